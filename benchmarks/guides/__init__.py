"""Compares the examples of public guides with KerasTuner: their spaces, and the scores of equal trials."""
