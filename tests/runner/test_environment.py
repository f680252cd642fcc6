"""The environment variables that a runner gets for its task's mesh."""

import os
from typing import Any
from unittest.mock import patch

from jobs.kinds.gate.payload import GateTask
from jobs.kinds.quantize.payload import QuantizeTask
from jobs.kinds.register.payload import RegisterTask
from jobs.kinds.search.payload import SearchPayload
from jobs.messages.task import DatasetFile
from jobs.messages.training import TrainTask
from jobs.spec.sections.after import Quantize
from jobs.spec.sections.mesh import MeshSpec
from tests.engine.helpers import spec_of
from workers.runner.environment import Environment

GPU = {"devices": "gpu", "shape": [1], "axis_names": ["data"]}


def applied(mesh: dict[str, Any], **environment: str) -> dict[str, str]:
    """Return a task's environment on a mesh, where the worker has the variables in `environment`."""
    spec = spec_of(mesh=mesh)
    dataset = DatasetFile(path="", digest="", profile={})
    objective = SearchPayload().objective(spec)
    task = TrainTask(folder="", spec=spec, dataset=dataset, retrain=None, objective=objective, model_name="t")
    with patch.dict(os.environ, environment, clear=True):
        Environment.for_task(task).apply()
        return dict(os.environ)


def test_the_spec_decides_about_the_memory_of_gpus() -> None:
    mesh = {**GPU, "memory_fraction": 0.4, "preallocate": True}
    applied_environment = applied(
        mesh, XLA_PYTHON_CLIENT_MEM_FRACTION="0.9", XLA_PYTHON_CLIENT_PREALLOCATE="false"
    )
    assert (
        applied_environment["XLA_CLIENT_MEM_FRACTION"],
        applied_environment["XLA_PYTHON_CLIENT_PREALLOCATE"],
    ) == ("0.4", "true")
    assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in applied_environment, "JAX refuses to start with both names"


def test_a_spec_without_these_fields_leaves_them_to_the_operator() -> None:
    names = {"XLA_CLIENT_MEM_FRACTION": "0.9", "XLA_PYTHON_CLIENT_PREALLOCATE": "true"}
    assert names.items() <= applied(GPU, **names).items()
    applied_environment = applied(GPU)
    assert applied_environment["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert "XLA_CLIENT_MEM_FRACTION" not in applied_environment


def test_a_later_step_takes_the_devices_that_its_machine_has() -> None:
    split = {**GPU, "shape": [2], "layout": [{"match": ".*/kernel", "axes": [None, "data"]}]}
    spec = spec_of(mesh={**split, "memory_fraction": 0.4})
    data = DatasetFile(path="", digest="", profile={})
    quantize = QuantizeTask(folder="", spec=spec, quantize=Quantize(mode="int8"), dataset=data, model="")
    gates = GateTask(folder="", challenger="", challenger_digest="", dataset=data, spec=spec)
    for task in (quantize, gates):
        environment = Environment.for_task(task)
        assert (environment.platform, environment.memory_fraction) == (None, 0.4)


def test_a_version_is_validated_on_the_simulated_devices_of_its_mesh() -> None:
    mesh = MeshSpec(shape=(8,), axis_names=("data",), simulate=8)
    task = RegisterTask(folder="", model="", digest="", mesh=mesh)
    environment = Environment.for_task(task)
    assert (environment.platform, environment.simulated_devices) == ("cpu", 8)
    without_mesh = Environment.for_task(RegisterTask(folder="", model="", digest=""))
    assert (without_mesh.platform, without_mesh.simulated_devices) == (None, 1)
