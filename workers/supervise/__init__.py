"""One attempt, start to end: claim, spawn, pump, record, finish. Knows no Django and no Celery.

`attempt.Supervision` is the whole story; `ledger.Ledger` is all it needs of a database.
"""
