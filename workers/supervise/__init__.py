"""Supervises attempts: starts a runner, records its events, enforces limits, writes the end.

The package imports neither Django nor Celery. Start reading at `attempt.attempt.AttemptSupervisor`;
`attempt_repository.AttemptRepository` is its interface to the database.

- **stale**: an attempt that this worker no longer holds. Nothing more is written for it.
- **yield**: end a task after a checkpoint, because a pause, a stop or the node's drain asks for it.
- **cap**: the most memory that a run may use.
- **file from outside**: an upload or other file that may be hostile. A task that reads one has limits.
"""
