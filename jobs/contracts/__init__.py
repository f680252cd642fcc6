"""What an experiment asks for and what processes say to each other: pydantic only, no Django.

Import from the submodules; this package re-exports nothing so that a runner loads only what it needs.
"""
