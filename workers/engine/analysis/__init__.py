"""Analyses of finished trials: numbers in, numbers out."""
