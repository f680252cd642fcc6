"""The worker node: `python -m workers.node`. Owns runners, leases, spools and the writes of one worker.

Celery runs in a child process whose tasks pass hints on to the node; killing it disturbs no run.
"""
