"""Writes to the database, one module per subject.

The keyword-only argument `by` is the acting user. Each call is one transaction, with its audit row.
"""
