"""Supervises attempts: starts a runner, records its events, enforces limits, writes the end.

The package imports neither Django nor Celery. Start reading at `attempt.AttemptSupervisor`;
`attempt_repository.AttemptRepository` is its interface to the database.
"""
