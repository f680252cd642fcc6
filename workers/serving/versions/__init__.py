"""Loaded versions: their child processes and request queues.

`version` keeps one approved version running: `artifacts` has its verified file, `batcher` its queue, and
`child_process` is the connection to its child. A version is **warm** once it can answer.

Children are forked by `child_starter`. Those that need user code have a sandbox: `sandboxes` is the entry
point, `sandbox_starter` starts them, and `sandboxed_child` checks all that they send.
"""
