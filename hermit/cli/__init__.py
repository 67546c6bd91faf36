"""The command line: one module for each command, and the only layer that prints."""
