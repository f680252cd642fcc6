"""Finds columns that may be understood in another way, and offers the other way.

`identifiers` and `row_order` are about roles, `writings` about labels; `doubts` makes offers of them.
"""
