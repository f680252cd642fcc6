"""Forks processes from one whose imports are done: `server` runs there, `client` asks for the forks.

`sandbox_forks` asks for a fork that enters a sandbox: it passes the plan in a `plan_file`, and the fork
carries it out (`into_sandbox`). `interpreter` runs a Python command line in a fork.
"""
