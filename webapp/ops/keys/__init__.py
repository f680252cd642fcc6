"""Replaces the keys of an installation."""
