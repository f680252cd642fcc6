"""Runs users' scripts as their own programs, and reads their reports."""
