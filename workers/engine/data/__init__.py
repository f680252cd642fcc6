"""From an upload to arrays: reading, encoding, storing, splitting, batching. Needs no Keras."""
