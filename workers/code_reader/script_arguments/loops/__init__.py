"""Finds the arguments that loops and helper functions declare, turn by turn."""
