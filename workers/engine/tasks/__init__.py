"""Implements the tasks that runners execute, one module for each kind.

The task functions are called `run` (two in `script`); `jobs.kinds` names them. The other modules are shared:
`artifacts`, `export`, `first_phase`, `judged_models`, `latency`, `objective`, `overviews`, `steps`,
`tolerance`. `warmup` is a small trial for a standby.
"""
