"""Lists the prediction server's protocols."""

from workers.serving.protocols.open_inference import OPEN_INFERENCE
from workers.serving.protocols.protocol import Protocol
from workers.serving.protocols.tensorflow_serving import TENSORFLOW_SERVING

PROTOCOLS: tuple[Protocol, ...] = (TENSORFLOW_SERVING, OPEN_INFERENCE)
"""The first one that owns a path answers."""
