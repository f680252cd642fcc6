"""The form for an experiment with a script: its arguments, the data, and a search over the arguments."""
