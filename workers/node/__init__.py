"""The worker node: `python -m workers.node`. Runs the attempts that are assigned to one worker.

It holds their leases, supervises their runner processes and writes their events to the database. Celery runs
in a child process that only forwards hints, so killing that process disturbs no run.
"""
