"""Implements the tasks that runners execute, one module for each kind."""
