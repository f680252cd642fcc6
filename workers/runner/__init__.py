"""The child process that runs tasks: it sets the process environment first and then imports the engine.

`serve.Runner` is its main loop. The supervisor's **control lines** arrive on standard input
(`control_reader`), such as a task or the request to yield; **events** leave through a pipe (`event_writer`),
and the last one of a task is its **final event**. `event_reporter` gives the engine its `Report`.

`registry` finds the engine function for a task. `forkserver` forks runners whose imports are done, and
`standby` prepares a runner that has no task yet.
"""
