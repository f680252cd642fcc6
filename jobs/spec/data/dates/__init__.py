"""Defines how texts are dates: formats, their directives, and names of months and zones."""
