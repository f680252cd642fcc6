"""Opens data at an address for reading, once and from begin to end.

The process that reads has neither a database connection nor other work while it waits for a source.
"""
