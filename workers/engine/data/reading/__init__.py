"""Reads table files: CSV, JSON Lines, Parquet and Arrow.

`csv_file` reads text tables of every size in the same way, with the parts in `csv_columns`. `several` reads
several files as one table. A **gap** is a missing value, and **bad rows** are those that cannot be read.
"""
