"""Runs a process as its own user that sees only the files it was given (Linux).

`check` decides whether that is possible here, `users` assigns user ids, `view` decides which folders it sees,
`access` gives it folders and files, and `confine` removes its privileges in the process itself.

Runners without user code are confined in this way alone. Those with user code run in a `sandbox`, which
uses the same users and access where they exist. `access` changes access control lists (`acl`), so the files
keep their owner.
"""
