"""Reads, encodes, stores, splits and batches data. Does not need Keras.

An upload is read by `reading` or `image_files` to a `table`, described (`statistics`, `schema`, `overview`),
encoded (`encode`), and written as one Arrow file, a dataset version's file.

A training loads it as a `dataset`, whose `rows` are in memory or **streamed**: read from the mapped file when
they are used. `split` makes the parts, `folds` divide rows for cross-validation, `windows` make one instance
of several rows, and `batches` order the rows of each epoch. A large table's columns are **spilled** to files.
"""
