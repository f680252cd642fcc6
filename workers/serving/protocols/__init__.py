"""TensorFlow Serving's REST API and the Open Inference Protocol, as plain functions over bytes and arrays."""
