"""The controllers of a cluster pair, and their lifecycle."""
