"""Names the error codes on which both the engine and the pipeline of jobs depend."""

CODE_FATAL = "code_fatal"
"""The code of a trial has ended the search by a `FatalError` of KerasTuner."""
