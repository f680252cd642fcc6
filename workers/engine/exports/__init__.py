"""Writes trained models in the formats of `jobs.spec.exports`. Each format has a module.

`writing` is the entry point, and `source` declares what each format gets and returns.
"""
