"""The child process that runs tasks: it sets the process environment first and then imports the engine."""
