"""Turns rows of a table into the input of a model. Training and serving execute this code."""
