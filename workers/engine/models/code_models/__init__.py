"""Finds how the models of user code train, what their outputs mean, and whether they can be saved."""
