"""Builds the models of user code with the values that reveal their hyperparameters, and finds how they train.

It also finds what their outputs mean, and whether they can be saved.
"""
