"""Search algorithms: functions without state that suggest the next trials from those so far.

`jobs.messages.suggest` defines request and answer, `suggest.suggest` computes the answer, and `python -m
workers.engine.search` does so in its own process. Every algorithm is a module with a function `answer`, named
by its entry in `jobs.spec.algorithms`.
"""
