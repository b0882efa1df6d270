"""The size of a step of the event loop.

More is done in several steps, and other tasks run in between.
The renewal of a Lease and the answers to probes wait for a step at most.
"""

#: Objects, or lines of a watch, that are processed in a step.
STEP_OBJECTS = 100
#: Bytes of JSON that are processed in a step. An object of more bytes has steps of its own.
STEP_BYTES = 256 << 10
