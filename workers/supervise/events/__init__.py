"""Reads, checks, spools and records a run's events and log lines.

An event line from a runner goes from `RunnerSession` to the `event_recorder`, which appends it to the
**spool**, a file on the worker's disk. In batches, `event_validation` then checks the files that the events
name, and the repository writes them to the database. A batch is **acknowledged** once it is committed. During
an outage of the database only the spool grows.

`log_file` reads a runner's output. `event_pace` and `log_quota` slow or thin out events above the
project's quota; `rate_limiter` spaces the commits.
"""
