"""Runs scripts of users as programs of their own, and reads their reports."""
