"""Trains, evaluates and exports models with Keras and JAX. Independent of processes and the database."""
