"""Runs one attempt, from its claim to its end."""
