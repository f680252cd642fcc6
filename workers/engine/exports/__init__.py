"""Writes trained models in the formats of `jobs.spec.exports`. Each format has a module."""
