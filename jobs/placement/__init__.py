"""Decides which waiting work gets which slots: pure functions over plain data, without a database.

`decision.decide` takes a `state.State` and returns placements, reasons and preemptions. The callers read the
state from rows and write the answer.
"""
