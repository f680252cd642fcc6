"""Imports search spaces from other tools' files, without loss or with an error for each problem.

Each format has a module with `looks_like` and `read`; `importing` lists them. Settings that only concern how
runs are launched are ignored with a note. A setting that affects the configurations, their ranking or when
the search ends, and that has no exact equivalent in a search spec, is an error.
"""
