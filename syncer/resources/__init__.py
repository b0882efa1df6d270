"""The built-in syncers, a file for each kind. They obey the same contract as any plugin."""
