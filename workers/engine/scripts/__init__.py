"""Runs scripts of users as programs of their own, and reads what they report."""
