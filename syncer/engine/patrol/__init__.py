"""Every key again, at intervals: what needs a write then has drifted."""
