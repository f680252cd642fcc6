"""Evaluates predictions: metrics with confidence intervals, promotion gates, ensemble weights."""
