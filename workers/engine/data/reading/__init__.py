"""Reads table files: CSV, JSON Lines, Parquet and Arrow.

CSV has two readers: `csv_blocks` for large files in the usual form, and `csv_file` for all others; both give
the same columns. `several` reads several files as one table. A **gap** is a missing value, and **bad rows**
are those that cannot be read.
"""
