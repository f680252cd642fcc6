"""Looks after the database before it is migrated or replaced."""
