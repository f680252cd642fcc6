"""Moves checkpoints between machines that have only the artifact store in common.

The supervisor does this, since runners have no access to the store. `archive` packs a checkpoint into one
file and unpacks it, and compares each byte with the manifest in both directions. `uploads` copies the newest
checkpoints of a running attempt, and `fetching` brings those that a new attempt may resume from.
"""
