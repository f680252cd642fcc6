"""Declares the answers of the REST API and of the pages as pydantic models, by wing.

`jobs.queries` builds them. Documents that are stored as JSON are described by typed dictionaries
and passed through unchanged.
"""
