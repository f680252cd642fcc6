"""Reads, checks, spools and records a run's events and log lines."""
