"""Search algorithms: functions without state that suggest the next trials from those so far.

`jobs.messages.suggest` defines request and answer, `suggest.suggest` computes the answer, and `python -m
workers.engine.search` does so in its own process. Every algorithm is a module with a function `answer`, named
by its entry in `jobs.spec.algorithms`.

A **history** has a search's trials, and a **row** is one of them. A **configuration** is one value for each
active hyperparameter, and an **axis** a hyperparameter with several values. A **proposal** is a configuration
that an algorithm chooses; the search's rule for `duplicates` makes a **suggestion** of it.
"""
