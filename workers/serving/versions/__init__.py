"""Loaded versions: their child processes and the queues in front of them."""
