"""Turns table rows into a model's input. Training and serving execute this code.

`jobs.spec.data.features.Features` is a fitted pipeline as data, which `fitting` makes from training rows and
`files` stores in the model's file. `pipeline.Pipeline` executes it. The pipeline of a search, its sequence of
jobs, is something else.
"""
