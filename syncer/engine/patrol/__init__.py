"""The patroller reconciles every key at intervals; a key that needs a write has drifted."""
