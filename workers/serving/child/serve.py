"""Loads a model in the child, warms it up and answers prediction frames."""

import gc
import logging
import socket
import time
from pathlib import Path

import jax

from workers.serving.child import model as models
from workers.serving.child.programs import Programs
from workers.serving.frames import Frame, read_frame, write_frame

logger = logging.getLogger("trainyard.serving.child")


def load_and_serve(connection: socket.socket, *, model: Path | None, cache: Path, max_batch: int) -> None:
    """Answer predict frames until the router closes the connection.

    Args:
        connection: the socket to the router.
        model: the file to load; if None, the first frame names it.
        cache: the folder of the compile cache.
        max_batch: the number of rows of the largest bucket, a power of two.

    Raises:
        ConnectionError: the router closed the connection inside a frame.
        ValueError: the model cannot be served.
    """
    _enable_compile_cache(cache)
    if model is None:
        write_frame(connection, {"op": "spare"})
        if (frame := read_frame(connection)) is None:
            return
        model = Path(frame.header["model"])
    began = time.monotonic()
    programs = Programs(models.load(model), max_batch)
    programs.warm()
    gc.collect()
    gc.freeze()  # exempt the loaded objects, so that garbage collection does not delay requests
    seconds = round(time.monotonic() - began, 3)
    logger.info("warmed %s in %.2f s", model.name, seconds)
    signature = programs.model.signature.model_dump(mode="json")
    write_frame(connection, {"op": "ready", "signature": signature, "seconds": seconds})
    while (frame := read_frame(connection)) is not None:
        _answer(connection, programs, frame)


def _enable_compile_cache(folder: Path) -> None:
    """Cache compiled programs, small ones too, so that a restarted child does not compile again."""
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _answer(connection: socket.socket, programs: Programs, frame: Frame) -> None:
    number = frame.header["id"]
    try:
        outputs = programs.run(frame.tensors)
    except (ValueError, TypeError, RuntimeError) as error:  # the model refuses the shapes
        logger.warning("a batch failed: %s", error)
        write_frame(connection, {"op": "error", "id": number, "error": str(error)[:2000]})
    else:
        write_frame(connection, {"op": "outputs", "id": number}, outputs)
