import os

# Keras without a backend named dies at import; one thread keeps two cores free for the others.
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
