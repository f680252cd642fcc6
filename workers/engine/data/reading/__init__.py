"""Reads the files of tables: CSV, JSON Lines, Parquet and Arrow."""
