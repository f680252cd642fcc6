"""Computes a dataset version's overview, bounded in rows, columns and memory."""
