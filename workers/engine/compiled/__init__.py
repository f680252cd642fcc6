"""Compiles training steps, caches the programs and chooses the fastest way to run them."""
