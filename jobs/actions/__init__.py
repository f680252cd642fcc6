"""Every write, by subject.

Keyword-only `by` says who acts; each call is one transaction with its audit row.
"""
