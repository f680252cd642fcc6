"""Keras and JAX as a library: takes parts of a spec, returns results; knows no process and no database."""
