"""Runs users' scripts as their own programs, and reads their reports.

Here a **program** is a script's process (`program`), not a compiled function. `run` starts it in its own
folder and finds metrics in the lines that it prints (`metric_lines`); `outputs` keeps its files.
"""
