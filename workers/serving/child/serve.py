"""Loads a model in the child, warms it up and answers prediction frames."""

import gc
import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jax

from workers.engine.compiled import cache as compile_cache
from workers.engine.models.devices.memory import naming_lack_of_memory
from workers.model_process.frames import Frame
from workers.serving.child import model as models
from workers.serving.child.ahead import AheadCompiler
from workers.serving.child.connection import Connection
from workers.serving.child.failures import failure_of
from workers.serving.child.memory import return_unused
from workers.serving.child.programs import Programs
from workers.serving.child.sizes import Sizes

if TYPE_CHECKING:
    from workers.serving.child.mesh import MeshLoad

logger = logging.getLogger("trainyard.serving.child")
# A version with many seen sizes serves before all of them are compiled.
_WARM_SECONDS = 20.0


def load_and_serve(
    connection: Connection,
    *,
    compiled: Path | None,
    max_batch: int,
    max_programs: int,
    code: Path | None = None,
) -> None:
    """Load the model that the first frame names, then answer predict frames until the router disconnects.

    Args:
        connection: the connection to the router.
        compiled: the folder with the compile cache; None for no cache.
        max_batch: how many rows the largest bucket has, a power of two.
        max_programs: programs that are kept for a model with open sizes.
        code: the folder with the code that the model needs, if this process is in a sandbox.

    Raises:
        ConnectionError: the router closed the connection inside a frame.
        ValueError: the model cannot be served.
    """
    # A child that is restarted does not compile again.
    if compiled is not None:
        compile_cache.enable(str(compiled))
    # A sandbox has no devices, and executes no programs that others have compiled. JAX may have been imported
    # in the environment of the fork server.
    if code is not None:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_compilation_cache", False)
    # A batch runs in the thread that waits for it: handing it to another takes longer than a small model. The
    # heartbeat continues, because JAX releases Python's lock meanwhile.
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    connection.start_heartbeat()
    if (frame := connection.read()) is None:
        return
    model, mesh = Path(frame.header["model"]), _mesh_of(frame)
    seen: list[Sizes] = [tuple(tuple(shape) for shape in sizes) for sizes in frame.header["seen"]]
    began = time.monotonic()
    with naming_lack_of_memory(model, on_mesh=mesh is not None):
        programs = Programs(models.load(model, code, mesh), max_batch, max_programs)
        ahead = AheadCompiler(programs)
        slowest = _warm(programs, ahead, seen)
    seconds = round(time.monotonic() - began, 3)
    logger.info("warmed %s in %.2f s on %s", model.name, seconds, _devices_of(programs.model))
    signature = programs.model.signature.model_dump(mode="json")
    connection.send({"op": "ready", "signature": signature, "seconds": seconds, "slowest": slowest})
    while (frame := connection.read()) is not None:
        if _answer(connection, programs, frame) and programs.has_open_sizes:
            ahead.see(tuple(array.shape[1:] for array in frame.tensors))


def _mesh_of(frame: Frame) -> "MeshLoad | None":
    """Return the mesh that a load frame names, with its devices opened; None for one device."""
    if "mesh" not in frame.header:
        return None
    # Most models need none of its imports.
    from workers.serving.child.mesh import MeshLoad

    mesh = MeshLoad.from_header(frame.header["mesh"])
    mesh.open_devices()
    return mesh


def _devices_of(model: models.PureModel) -> str:
    kind, first = jax.devices()[0].device_kind, next(iter(model.weights[0]), None)
    count = 1 if first is None else len(first.sharding.device_set)
    return f"{kind}" if count == 1 else f"{count} devices ({kind})"


def _warm(programs: Programs, ahead: AheadCompiler, seen: list[Sizes]) -> float:
    """Compile a model's programs, and return the seconds of its slowest call; 0 for open sizes."""
    slowest = 0.0
    if programs.has_open_sizes:
        ahead.warm(seen, _WARM_SECONDS)
        ahead.start()
    else:
        slowest = programs.warm()
    # Exempts the loaded objects from garbage collection, which would delay requests.
    gc.collect()
    gc.freeze()
    return_unused()
    return slowest


def _answer(connection: Connection, programs: Programs, frame: Frame) -> bool:
    """Answer one batch; return whether it could be computed."""
    answer: dict[str, object] = {"op": "outputs", "id": frame.header["id"]}

    def is_new() -> None:
        connection.send({"op": "compiling"})
        answer["compiled"] = True

    try:
        outputs = programs.run(frame.tensors, is_new)
    # No request may end the child, whatever a layer, XLA or NumPy raises.
    except Exception as error:
        failure = failure_of(error)
        if failure is not error:
            logger.exception("a batch failed")
        connection.send({**answer, "op": "error", "kind": failure.kind, "error": str(failure)[:2000]})
        return False
    connection.send(answer, outputs)
    return True
