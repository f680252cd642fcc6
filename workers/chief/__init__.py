"""Implements the chief of KerasTuner's distributed mode, so that unmodified scripts run trials of a search.

A chief is the process that hands out trials to scripts and collects their metrics, by gRPC.
"""
