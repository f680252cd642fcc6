"""Starts code of users: runners, models beside a task, and models of the prediction server.

`files` has the folder of one process, `process` the process in its sandbox, `output` the lines that it
prints, `starter` chooses the level and starts it, and `threads` does the slow steps beside the event loop.
"""
