"""Finds and claims the GPUs of a machine, and reads their figures and whose processes are on them."""
