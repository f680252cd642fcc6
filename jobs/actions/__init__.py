"""Writes to the database, by wing, one module per subject.

The keyword-only argument `by` is the acting user. Each call is one transaction, with its audit row.

Two transactions must not wait for each other, so all lock rows in one order: an attempt, the root job before
its steps, a model's endpoint, the project, other rows, and last the audit log's head, which
`audit.record` locks. Rows that others refer to are locked with `no_key=True`: otherwise the check of a new
reference, which happens at the commit, would wait for them.
"""
