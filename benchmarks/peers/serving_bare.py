"""Serves a model with a minimal ASGI server without batching, for comparison in `serving_predict`."""

import json
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import uvicorn
import uvloop

from benchmarks.peers.serving_model import Predict, compiled


def application(predict: Predict) -> Any:
    async def app(_scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        answer = predict(np.asarray(orjson.loads(body)["instances"], np.float32))
        content = orjson.dumps({"predictions": answer}, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    return app


def main(model: str, address: Path) -> None:
    predict = compiled(model)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(application(predict), lifespan="off", http="httptools", access_log=False)
    address.write_text(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}))
    uvloop.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
