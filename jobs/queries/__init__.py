"""Reads for pages and API, by wing, one module per subject."""
