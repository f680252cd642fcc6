"""Search algorithms: rows of trials in, what to train next out. No state of their own.

`jobs.contracts.suggest` has the question and the answer, `suggest.suggest` answers it, and `python -m
workers.engine.search` does so in a process of its own. Every algorithm is a module with a function `answer`,
which its entry in `jobs.contracts.algorithms` names.
"""
