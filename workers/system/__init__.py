"""Provides what all worker programs need: processes, kernel, limits and the machine's files."""
