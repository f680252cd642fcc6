"""Implements the chief for KerasTuner's distributed mode, so that unmodified scripts run a search's trials.

A chief is the process that hands out trials to scripts and collects their metrics, by gRPC. One chief serves
one search: `server` receives the calls, `chief` answers them, and `protocol` has the messages.

A **peer** is the address from which a script calls. Each trial that a script gets is an attempt, whose number
is in the trial's name. `connection_tracker` finds scripts that have disconnected, and `report_quota` delays
reports above the project's quota.
"""
