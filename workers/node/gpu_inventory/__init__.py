"""Reads the GPUs of a machine again and again: figures, and whose processes are on them."""
