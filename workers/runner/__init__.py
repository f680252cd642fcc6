"""The child process that trains: reads a task, prepares its environment, only then imports the engine."""
