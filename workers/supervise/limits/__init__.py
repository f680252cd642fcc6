"""Limits of runs, and what ends a run that exceeds them."""
