"""Trains and serves models: worker nodes, their runners, the engine and the prediction server.

`docs/map.md` lists the rooms, which are the packages here. `jobs` defines job, attempt, fence, lease, trial
and hint. Terms that several rooms use:

- **node**: the process on each worker machine. A **worker** is its row in the database, with a number of
  **slots**; each attempt uses one or more of them. Each job names the **pool** of workers that may run it.
- **supervisor**: the part of a node that runs one attempt.
- **runner**: a child process that executes **tasks**, one after another. A task is the message with the work
  of one attempt (`jobs.messages.task`).
- **fork server**: a process that has done the imports and forks others, which start quickly. A **standby** is
  a runner that has warmed up before there is a task for it.
- **environment**: the process settings that JAX reads once (`workers.runner.environment`), or a virtual
  environment with the packages of user code (`workers.confinement.environments`).
- **sandbox**: the confinement of user code, at one of the **levels** that a machine offers.
- **model process**: `workers.serving.child`, which executes one model: in the prediction server, where it is
  called a **child**, and in a sandbox on a worker.
- **owner**: the person who submitted a job. In `workers.confinement`, it is the user id of a process.
"""
