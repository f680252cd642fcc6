"""The child's whole life after its imports: load, warm, say ready, answer."""

import gc
import logging
import socket
import time
from pathlib import Path

import jax

from workers.serving.child import model as models
from workers.serving.child.programs import Programs
from workers.serving.wire import Frame, read_frame, write_frame

logger = logging.getLogger("trainyard.serving.child")


def load_and_serve(connection: socket.socket, *, model: Path | None, cache: Path, max_batch: int) -> None:
    """Answer predict frames until the router closes the connection.

    Args:
        connection: to the router.
        model: the file to load; without one, the first frame names it.
        cache: folder of compiled programs.
        max_batch: rows of the largest bucket, a power of two.

    Raises:
        ConnectionError: the router went away in the middle of a frame.
        ValueError: the model cannot be served.
    """
    _keep_compiled_programs(cache)
    if model is None:
        write_frame(connection, {"op": "spare"})
        if (frame := read_frame(connection)) is None:
            return
        model = Path(frame.header["model"])
    began = time.monotonic()
    programs = Programs(models.load(model), max_batch)
    programs.warm()
    gc.collect()
    gc.freeze()  # what is loaded by now stays; no request waits while the collector looks through it
    seconds = round(time.monotonic() - began, 3)
    logger.info("warmed %s in %.2f s", model.name, seconds)
    signature = programs.model.signature.model_dump(mode="json")
    write_frame(connection, {"op": "ready", "signature": signature, "seconds": seconds})
    while (frame := read_frame(connection)) is not None:
        _answer(connection, programs, frame)


def _keep_compiled_programs(folder: Path) -> None:
    """Let a restarted child read its programs instead of compiling them; small ones count too."""
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _answer(connection: socket.socket, programs: Programs, frame: Frame) -> None:
    number = frame.header["id"]
    try:
        outputs = programs.run(frame.tensors)
    except (ValueError, TypeError, RuntimeError) as error:  # shapes that the model's own code refuses
        logger.warning("a batch failed: %s", error)
        write_frame(connection, {"op": "error", "id": number, "error": str(error)[:2000]})
    else:
        write_frame(connection, {"op": "outputs", "id": number}, outputs)
