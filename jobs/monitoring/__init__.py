"""Probes and metrics of each part: whether it is alive, whether it can do its work, and its figures."""
