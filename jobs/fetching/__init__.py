"""Fetches dataset versions' files, each in a separate process that the scheduler starts."""
