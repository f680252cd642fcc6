"""Imports user code, and names the causes of its errors.

The code is executed, so only processes in a sandbox may use it.
"""
