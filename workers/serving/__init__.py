"""The prediction server: a router without JAX in front of one child process per loaded model version.

`protocols` parses requests and encodes responses, `releases` determines the served versions, `versions`
manages the children and their queues, and `child` is the only package that imports Keras and JAX.
"""
