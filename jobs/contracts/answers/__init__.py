"""The shapes in which the REST API and the pages show everything: pydantic models, one module per subject.

`jobs.queries` builds them. Documents that are stored as JSON are described by typed dictionaries
and passed through unchanged.
"""
