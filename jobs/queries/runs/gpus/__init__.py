"""Which GPUs of workers a job may get: those that are open to it, and those that are reserved for others."""
