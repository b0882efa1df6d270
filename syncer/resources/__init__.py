"""The built-in syncers, one file a kind. They obey the same contract as a plugin of a stranger."""
