"""Codes of warnings that the program itself reads; all others are only shown."""

WORSE_THAN_TRIAL = "worse_than_trial"
"""A retrained model is clearly worse than its trial: it is not recommended."""
DECISIVE = frozenset({WORSE_THAN_TRIAL})
"""A job keeps one warning of each, however many others it has."""
