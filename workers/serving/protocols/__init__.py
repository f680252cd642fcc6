"""TensorFlow Serving's REST API and the Open Inference Protocol, as pure functions on bytes and arrays."""
