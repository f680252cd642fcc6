"""Serves a model with LitServe, as its documentation shows it: one worker process, no batching.

LitServe's batching stacks whole requests and waits for more of them. With a model that takes microseconds it
is slower than its default, so the default is measured.
"""

import json
import sys
from pathlib import Path
from typing import Any

import litserve
import numpy as np

from benchmarks.peers.ports import free_port


class Model(litserve.LitAPI):
    def __init__(self, path: str, **options: Any) -> None:
        super().__init__(**options)
        self._path = path

    def setup(self, device: str) -> None:
        # In the worker process: the server's own process does not need Keras.
        from benchmarks.peers.serving_model import compiled

        self._predict = compiled(self._path)

    def decode_request(self, request: dict[str, Any]) -> Any:
        return np.asarray(request["instances"], np.float32)

    def predict(self, x: Any) -> Any:
        return self._predict(x)

    def encode_response(self, output: Any) -> dict[str, Any]:
        return {"predictions": output.tolist()}


def main(model: str, address: Path) -> None:
    port = free_port()
    server = litserve.LitServer(Model(model, api_path="/predict"), accelerator="cpu", workers_per_device=1)
    address.write_text(json.dumps({"url": f"http://127.0.0.1:{port}", "path": "/predict"}))
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
