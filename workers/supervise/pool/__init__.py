"""Runner processes: started, kept warm, forked and confined.

`runner_pool` hands out a `runner_process`: an **idle** one that has served the same job, a `standby`, or a
new one. A **launcher** starts it: as a new interpreter (`launcher`), by a fork (`fork_server`,
`fork_servers`), or in a sandbox (`sandboxes`). A **key** states which tasks a runner fits: its root job,
environment, GPUs and sandbox.

A runner with user code has a `runner_sandbox`, its own folder for checkpoints (`runner_checkpoints`), and
GPUs as far as its sandbox allows them (`sandbox_gpus`). After a crash, the next node kills the `orphans`.
"""
