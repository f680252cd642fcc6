"""Recognizes columns of dates in texts and numbers, and describes how they were read."""
