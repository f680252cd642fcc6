"""Compiled training steps: programs, their caches and the choice between them."""
