"""Reads image archives."""
