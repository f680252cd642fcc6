"""Decision trees: grown by scikit-learn, kept as arrays, and saved as a Keras model with built-in layers."""
