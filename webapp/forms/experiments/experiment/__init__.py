"""Describes the experiment form: sections with fields, each at a JSON pointer in the spec.

`schema` reads type, bounds and default of each field from the spec; `learning`, `training`, `searching` and
`running` add labels and help texts; `sections` orders the steps; `start` provides the initial values. A test
compares the fields with those of the spec.
"""
