"""Computes a dataset version's overview, bounded in rows, columns and memory.

`overview` combines the sections: correlations, **gaps** (missing values), `information` about the target,
the target in each of the split's `parts`, and `repeats` (rows of the training part in other parts).
"""
