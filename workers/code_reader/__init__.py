"""Reads user code in a process with limits. It parses the code, and never imports or executes it."""
