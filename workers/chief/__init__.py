"""Implements the chief for KerasTuner's distributed mode, so that unmodified scripts run a search's trials.

A chief is the process that hands out trials to scripts and collects their metrics, by gRPC.
"""
