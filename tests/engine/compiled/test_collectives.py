"""Collectives are counted in the text of a compiled program, as XLA prints it."""

import pytest

from jobs.spec.plan.compiled_step import Collective, LargestBatch, Point, largest_batch
from workers.engine.compiled.collectives import collectives_in

PROGRAM = """
HloModule jit_train_step, is_scheduled=true, entry_computation_layout={(f32[8]{0})->(f32[8]{0}, f32[])}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%x, %y)
}

%body (p: (s32[], f32[16])) -> (s32[], f32[16]) {
  %p = (s32[], f32[16]{0}) parameter(0)
  %part = f32[16]{0} get-tuple-element(%p), index=1
  %all-gather.2 = bf16[32]{0} all-gather(%part), channel_id=7, dimensions={0}
  ROOT %tuple.1 = (s32[], f32[16]{0}) tuple(%p)
}

%condition (p: (s32[], f32[16])) -> pred[] {
  ROOT %less = pred[] constant(true)
}

ENTRY %main.1_spmd (param: f32[8]) -> (f32[8], f32[]) {
  %param = f32[8]{0} parameter(0)
  %all-reduce.1 = (f32[8]{0}, f32[3,4]{1,0}, /*index=2*/f32[], s32[5]{0}) all-reduce(%param), to_apply=%add
  %while.1 = (s32[], f32[16]{0}) while(%tuple), condition=%condition, body=%body, TRIPS
  %start = (f32[4]{0}, f32[8]{0}) all-gather-start(%param), dimensions={0}
  %done = f32[8]{0} all-gather-done(%start)
  %fusion = f32[8]{0} fusion(%param), kind=kLoop, calls=%add, metadata={op_name="all-reduce(f32[99])"}
  ROOT %result = (f32[8]{0}, f32[]) tuple(%param)
}
"""
KNOWN = 'backend_config={"known_trip_count":{"n":"3"}}'


@pytest.mark.parametrize(("trips", "times"), [(KNOWN, 3), ("metadata={}", 1)])
def test_combined_results_and_loops_are_counted(trips: str, times: int) -> None:
    collectives, has_loops = collectives_in(PROGRAM.replace("TRIPS", trips))
    assert has_loops
    assert {row.kind: (row.count, row.bytes) for row in collectives} == {
        "all-reduce": (1, 4 * (8 + 12 + 1 + 5)),
        # In the loop 32 bfloat16 values each time, and once the result of a gather that is only begun there.
        "all-gather": (times + 1, times * 64 + 32),
    }


def test_a_program_of_one_device_exchanges_nothing() -> None:
    text = "ENTRY %main (p: f32[8]) -> f32[8] {\n  ROOT %p = f32[8]{0} parameter(0)\n}\n"
    assert collectives_in(text) == ((), False)


def test_the_kinds_are_listed_by_their_bytes() -> None:
    listed, _ = collectives_in(PROGRAM.replace("TRIPS", KNOWN))
    assert [row.kind for row in listed] == ["all-gather", "all-reduce"]
    assert listed[0] == Collective(kind="all-gather", count=4, bytes=224)


def found(device: int, most: int = 10**6, *, curve: float = 0.0) -> tuple[LargestBatch, list[int]]:
    """Return the largest batch for a step of 100 bytes and one for each row, and the compiled batches."""
    compiled: list[int] = []

    def measure(rows: int) -> int:
        compiled.append(rows)
        return round(100 + rows + curve * max(rows - 64, 0))

    first, second = Point(32, 132), Point(64, 164)
    return largest_batch(first, second, device, 4, most, measure), compiled


def test_the_largest_batch_lies_on_a_line_and_is_confirmed_by_one_compilation() -> None:
    batch, compiled = found(1000)
    assert (batch.rows, batch.confirmed, batch.limited_by, compiled) == (900, True, "memory", [900])
    batch, compiled = found(1000, most=103)
    assert (batch.rows, batch.limited_by, compiled) == (100, "rows", [100])


def test_a_batch_that_does_not_fit_after_all_is_corrected_and_not_called_confirmed() -> None:
    batch, compiled = found(1000, curve=0.5)
    assert (batch.confirmed, compiled) == (False, [900])
    assert 4 <= batch.rows < 900 and 100 + batch.rows + 0.5 * (batch.rows - 64) <= 1000


def test_a_device_that_is_too_small_for_any_batch_has_none() -> None:
    batch, compiled = found(90)
    assert (batch.rows, compiled) == (0, [4])
    assert found(104)[0].rows == 4
