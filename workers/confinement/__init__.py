"""Runs code with limits: users of their own, sandboxes, forks into them, installed packages."""
