"""Makes columns of a text table whose fields are all read as texts, in batches.

`batches` reads the texts, `conversion` makes values of a column's texts in some rows, `facts` adds up the
properties of a column over all rows so far, and `growing` keeps the values of large tables. `tables` has the
ways for small, large and wide tables. The result does not depend on the sizes of the batches.
"""
