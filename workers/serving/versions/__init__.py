"""Loaded versions: their child processes and request queues."""
