"""Fetches the files of dataset versions, each in a process of its own that the scheduler starts."""
