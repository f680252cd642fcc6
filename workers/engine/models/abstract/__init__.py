"""Builds models without values for their variables."""
