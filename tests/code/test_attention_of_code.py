"""Attention of own code in float16, which CPUs cannot compute: refused for CPU devices, else a warning."""

from typing import Any

from django.test import Client

from tests.code.dry_builds import BUILT, ask, created, finish, pointers, spec_of
from tests.code.test_variables_of_code import planned, single
from tests.jobs.yard import PretendWorker
from tests.people import People

MESH = {"shape": [2], "axis_names": ["data"], "simulate": 2}
HALF = {"policy": "mixed_float16"}
SENTENCE = "a CPU cannot compute the attention of build_model in float16 (heads)"


def with_attention(api: Client, code: str, worker: PretendWorker) -> None:
    ask(api, code)
    finish(worker, BUILT.model_copy(update={"attention": ("heads",)}))


def warned(api: Client, spec: dict[str, Any]) -> list[str]:
    warnings = planned(api, spec)["warnings"]
    return [warning["message"] for warning in warnings if SENTENCE in warning["message"]]


def test_attention_in_float16_is_refused_on_a_mesh_of_cpu_devices(
    api: Client, code: str, worker: PretendWorker
) -> None:
    with_attention(api, code, worker)
    spec = {**single(code), "precision": HALF, "mesh": MESH}
    assert pointers(created(api, spec)) == ["/spec/precision/policy"]
    accepted: list[dict[str, Any]] = [{"precision": {"policy": "mixed_bfloat16"}}, {"mesh": None}]
    for others in accepted:
        assert created(api, {**spec, **others}).status_code == 201


def test_a_search_over_code_may_have_other_attention_so_it_is_only_warned_of(
    api: Client, code: str, worker: PretendWorker
) -> None:
    with_attention(api, code, worker)
    spec = {**spec_of(code), "precision": HALF, "mesh": MESH}
    (message,) = warned(api, spec)
    assert "trainings fail whose values do not change this" in message


def test_without_a_mesh_it_is_warned_of_unless_a_worker_has_a_gpu(
    api: Client, code: str, worker: PretendWorker, people: People
) -> None:
    with_attention(api, code, worker)
    spec = {**single(code), "precision": HALF}
    (message,) = warned(api, spec)
    assert "no worker of pool default has another device" in message
    assert warned(api, single(code)) == []
    PretendWorker(gpus=1)
    assert warned(api, spec) == []
