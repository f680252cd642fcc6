"""Starts user code: runners, models beside a task, and models in the prediction server.

`files` has one process's folder, `process` the process in its sandbox, `output` the lines that it
prints, `starter` chooses the level and starts it, and `threads` does the slow steps beside the event loop.

The order of calls: `ProcessFiles.create`, `ProcessFiles.fill`, `CodeStarter.start`, `CodeProcess.follow`,
`CodeProcess.close`, `ProcessFiles.close`.
"""
