"""Search algorithms: rows of trials in, values of new trials out. No state of their own.

`request.SuggestRequest` is what is asked, `suggest.suggest` answers it, `python -m workers.engine.search`
does so in a process of its own. Only `bayesian` imports keras_tuner, and only when it is asked for.
"""
