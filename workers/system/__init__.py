"""Provides what all worker programs need: processes, kernel, limits and the machine's files.

This is the lowest room: it imports no other room of `workers`.
"""
