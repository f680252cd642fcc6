"""Trains models: epochs, early stopping, pruning, checkpoints and a trial's executions."""
