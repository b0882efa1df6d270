"""The straight path, one file a step: watch, store, queue, decide, carry out."""
