"""Parses and encodes bodies; large ones in worker processes, so that other requests do not wait for them."""
