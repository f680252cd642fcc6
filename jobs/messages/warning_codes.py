"""Codes of warnings that the program itself reads; all others are only shown."""

WORSE_THAN_TRIAL = "worse_than_trial"
"""A retrained model is clearly worse than its trial: it is not recommended."""
SAME_VERSION = "same_version"
"""A job's model is bit by bit an earlier version: it is that version, and no other one was added."""
DECISIVE = frozenset({WORSE_THAN_TRIAL, SAME_VERSION})
"""A job keeps one warning of each, however many others it has."""
