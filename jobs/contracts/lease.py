"""The lease of an attempt: the server and its workers must count with the same duration."""

LEASE_SECONDS = 15.0
"""How long a worker holds an attempt after a renewal. It renews every five seconds, so two may fail."""
