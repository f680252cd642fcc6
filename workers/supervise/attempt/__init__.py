"""Runs one attempt, from its claim to its end.

1. `attempt` calls `prepare.load`, which downloads the inputs and completes the task.
2. `attempt_gpus` allocates GPUs, and `packages` installs what user code needs.
3. `runner_turn` takes a runner from the pool, hands over the files (`hand_over`), and returns or ends it.
4. `runner_session` sends the task to that runner, reads its events and watches its limits.
5. `database_calls` writes the end. The first end that any part sets is the one that counts.

A **turn** is all of one attempt's use of a runner; the **session** in it is the time in which the task runs.
"""
