"""Compares jobs, experiments and model versions: settings, metrics, learning curves."""
