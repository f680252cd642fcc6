"""TensorFlow Serving's REST API and the Open Inference Protocol, as pure functions of bytes and arrays."""
