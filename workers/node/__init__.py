"""The worker node: `python -m workers.node`. Runs the attempts that are assigned to one worker.

It holds their leases, supervises their runner processes and writes their events to the database. Celery runs
in a child process that only forwards hints, so killing that process disturbs no run.

`node` owns everything that lasts as long as the process; `membership` has the loops of one **worker id**.
After the scheduler has declared a worker **lost**, the node ends its runs and registers under a new id.

- **claim**: take over an assigned attempt by a conditional update (`held_attempts`).
- **drain**: have all runs write a checkpoint and end, because the node shuts down.
- **consumer**: the Celery child process. A **canary** is a message that the node sends to itself, to prove
  that the consumer receives messages.
"""
