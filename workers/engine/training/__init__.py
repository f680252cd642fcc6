"""Trains models: epochs, early stopping, pruning, checkpoints and the executions of a trial."""
