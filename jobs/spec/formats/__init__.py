"""Imports search spaces from the file formats of other tools, without loss or with an error for each problem.

Each format has a module with `looks_like` and `read`; `importing` lists them. Settings that only concern how
runs are launched are ignored with a note. A setting that affects the configurations, their ranking or the end
of the search, and that has no exact equivalent in a search spec, is an error.
"""
