"""Declares experiment specs as pydantic models, checks and plans them, and lists templates and algorithms.

Import from the submodules. This package imports none of them, so that a runner loads few modules.
"""
