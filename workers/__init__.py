"""Trains and serves models: worker nodes, their runners, the engine and the prediction server."""
