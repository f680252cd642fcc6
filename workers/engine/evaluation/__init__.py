"""Measures how good predictions are: metrics, intervals, gates, ensemble weights."""
