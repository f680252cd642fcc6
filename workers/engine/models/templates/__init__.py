"""Builds the layers for model templates, from normalized inputs to features: one function for each template.

The table in `jobs.spec.templates` names these functions. A **site** has the properties that all layers of one
model share, such as names and precision.
"""
