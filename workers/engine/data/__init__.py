"""Reads, encodes, stores, splits and batches data. Does not need Keras."""
