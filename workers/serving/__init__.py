"""The prediction server: a router without JAX in front of one child process per loaded model version.

`protocols` knows what requests look like, `releases` what may be served, `versions` keeps the
children and their queues, `child` is the only part that imports Keras and JAX.
"""
