"""Trains one model or several: epochs, early stopping, checkpoints."""
