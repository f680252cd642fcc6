"""Search algorithms: rows of trials in, what to train next out. No state of their own.

`jobs.contracts.suggest` says what is asked and answered, `suggest.suggest` answers it, `python -m
workers.engine.search` does so in a process of its own, with the algorithms that build a model.
"""
