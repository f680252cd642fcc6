"""Declares what processes send each other as pydantic models, one module per subject.

Import from the submodules. This package imports none of them, so that a runner loads few modules.
"""
