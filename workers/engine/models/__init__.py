"""Builds, changes, reads and writes Keras models."""
