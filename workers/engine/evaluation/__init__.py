"""Evaluates predictions: metrics with confidence intervals, promotion gates, ensemble weights.

`evaluate` chooses `classification` or `regression`. A **gate** compares a challenger with a champion, or with
a limit (`gates`, `gate_metrics`). A **member** is one of an ensemble's models.
"""
