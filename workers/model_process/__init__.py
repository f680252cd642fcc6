"""What both sides of a model's process share: frames, types, checks, errors.

The process is `workers.serving.child`. Its other side is the router of the prediction server, or `client` on
a runner, which asks for predictions by a model with user code. A **frame** is one message between them: a
JSON header and raw tensors.
"""
