"""Signed releases: polls and verifies them, fetches their files, serves them and reports back.

`polling` receives releases from the `dashboard`, `verification` checks their signatures, `catalog` keeps one
`endpoint` per model, and `state` saves them, so that a restarted server needs no dashboard.
An endpoint **converges**: it loads the newest release's production version, switches to it once it is warm,
and then loads the others. A **standby** version stays loaded for a rollback. This server is a **replica**.
"""
