"""Moves the database between SQLite and PostgreSQL."""
