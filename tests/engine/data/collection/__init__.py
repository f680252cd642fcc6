"""Small files that were reported as read wrongly, with the columns that are expected of each.

A case is one entry in a module of the group that it belongs to; `test_collection.py` reads all of them.
"""
