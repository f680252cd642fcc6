"""Computes the overview of a dataset version, bounded in rows, columns and memory."""
