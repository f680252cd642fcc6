"""Finds the rows of a text file among comments, notes and totals, and copies them."""
