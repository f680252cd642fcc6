"""Signed releases: polls and verifies them, fetches their files, serves them and reports back."""
