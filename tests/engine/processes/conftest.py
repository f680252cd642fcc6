from collections.abc import Callable, Sequence
from typing import Any

import pytest

SetCost = Callable[[float | None], list[int]]


@pytest.fixture
def set_cost(monkeypatch: pytest.MonkeyPatch) -> SetCost:
    """Return a function that sets a vmapped epoch's relative cost and returns each call's size."""
    from workers.engine.compiled.timing_results import TimingResults
    from workers.engine.compiled.vmapped import VmappedProgram

    calls: list[int] = []
    train = VmappedProgram.train

    def counting(self: Any, inputs: Sequence[Any], shared: Any) -> Any:
        calls.append(len(inputs))
        return train(self, inputs, shared)

    def set_to(cost: float | None) -> list[int]:
        monkeypatch.setattr(TimingResults, "relative_cost", lambda self, count: cost)
        monkeypatch.setattr(VmappedProgram, "train", counting)
        calls.clear()
        return calls

    return set_to
