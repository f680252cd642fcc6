"""Analyzes finished trials: the importance and the influence of hyperparameters.

**Importance** is how much a hyperparameter matters; **influence** is which of its values score better.
"""
