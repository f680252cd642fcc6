"""Trainings of each form, optimizer, template and data set. The folders beside have one or two of each.

They take minutes, so they are in the second tier.
"""
