"""Limits runs, and describes what ends a run that exceeds its limits."""
