"""The model child process: loads a verified `.keras` file, compiles it and answers prediction requests.

`serve` is its main loop, and `connection` its socket to the router. A **program** is the model compiled for
one **bucket**, a number of rows to which batches are padded, and for one set of **sizes**, the shapes of a
row. If the signature leaves sizes open, `ahead` compiles those that were **seen** in earlier requests.
A **beat** is a frame that shows that the process is not stopped.
"""
