"""Turns table rows into a model's input. Training and serving execute this code."""
