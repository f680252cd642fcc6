"""Runs code with limits: their own users, sandboxes, forks into them, installed packages."""
