"""Data contracts: experiment specs, and the messages between processes. Pydantic only, no Django.

Import from the submodules; this package re-exports nothing so that a runner loads only what it needs.
"""
