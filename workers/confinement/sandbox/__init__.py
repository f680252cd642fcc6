"""Runs user code in a sandbox (Linux; elsewhere only the level `process`).

`levels` finds by trying which levels the machine offers, `launch` starts a command at one of them, and
`watch` ends it above its limits. The started process executes `enter`, which confines itself and then becomes
the command. `enter` and the modules that it imports need only the standard library, so that it starts
quickly.

The process that the worker starts stays **outside** the sandbox and waits (`monitor`); `process` is the
worker's handle for it. The command's process is **inside**. Between them, a **guardian** ends all that the
command leaves behind. `plan` has the steps for all of them, and `stages` is their command line.
"""
