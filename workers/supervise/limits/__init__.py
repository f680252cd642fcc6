"""Limits runs, and describes what ends a run that exceeds its limits.

`limits` is for tasks that read a file from outside, `sandbox_limits` for runs with user code; `sandbox_end`
explains how those ended. `stall_detector` is the watchdog: it finds runs without **progress**, which are
events that only real work sends, such as metrics.
"""
