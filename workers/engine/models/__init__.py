"""Builds, modifies, loads and saves Keras models."""
