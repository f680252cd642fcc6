"""Reads archives of images."""
