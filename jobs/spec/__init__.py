"""Declares experiment specs and the messages between processes as pydantic models, without Django.

Import from the submodules. This package imports none of them, so that a runner loads few modules.
"""
