"""Analyzes finished trials."""
