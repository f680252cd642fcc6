"""Implements the chief of KerasTuner's distributed mode, for scripts that are not changed for it."""
