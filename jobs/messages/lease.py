"""Defines how long an attempt's lease lasts, on which the server and its workers must agree."""

LEASE_SECONDS = 15.0
"""How long a worker holds an attempt after a renewal. It renews every five seconds, so two may fail."""
