"""The engine's part of model templates: one function each, from normalized input to features.

`jobs.contracts.templates` has the table that names these functions.
"""
