"""Reads table files: CSV, JSON Lines, Parquet and Arrow."""
