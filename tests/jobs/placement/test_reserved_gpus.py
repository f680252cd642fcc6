"""Properties of all decisions about reserved GPUs, with the worker that takes them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.placement.reservations import Size, first_conflict, first_gpu_conflict
from jobs.placement.state import Reservation
from tests.jobs.placement.drawn import patient, people
from tests.jobs.placement.gpu_world import BOX, GpuWorld
from tests.jobs.placement.situations import HOUR, NOW, reserved, work

HOLDER = 9
STEP = 600.0


@st.composite
def gpu_reservations(draw: st.DrawFn, gpus: int, places: int) -> list[Reservation]:
    """Draw reservations of GPUs and slots that are accepted beside each other."""
    rows: list[Reservation] = []
    sizes = [Size(BOX, "w1", gpus * places)]
    for key in range(draw(st.integers(1, 4))):
        names = draw(st.sets(st.integers(0, gpus - 1), min_size=0 if rows else 1))
        begins = NOW + draw(st.integers(-2, 12)) * HOUR
        row = reserved(
            key=key,
            machine="w1",
            slots=len(names) * places or draw(st.integers(1, 2)),
            gpus=tuple(f"gpu:{number}" for number in sorted(names)),
            begins=begins,
            ends=begins + draw(st.integers(1, 8)) * HOUR,
            person=draw(people),
        )
        if row.ends > NOW and not first_gpu_conflict(row, rows) and not first_conflict(row, rows, sizes):
            rows.append(row)
    return rows


@st.composite
def boxes(draw: st.DrawFn) -> GpuWorld:
    gpus, places = draw(st.integers(1, 4)), draw(st.integers(1, 2))
    world = GpuWorld(gpus, places, draw(gpu_reservations(gpus, places)))
    world.waiting = [
        work(
            job,
            person=draw(people),
            slots=draw(st.integers(1, gpus)) if places == 1 else 1,
            seconds=draw(st.sampled_from([None, 1200.0, 3 * HOUR])),
            priority=draw(st.sampled_from([10, 50])),
        )
        for job in range(1, draw(st.integers(1, 16)) + 1)
    ]
    return world


@settings(patient, max_examples=60)
@given(boxes(), st.lists(st.booleans(), min_size=40, max_size=40))
def test_no_run_of_others_is_on_a_gpu_while_it_is_reserved(world: GpuWorld, reports: list[bool]) -> None:
    """Nor is work placed for which the worker has no GPU, also if its report is late."""
    for has_reported in reports:
        world.step(STEP, lasts=2 * HOUR, reports=has_reported)
        for row in world.rows:
            if row.begins < world.now and row.ends > world.now - STEP:
                foreign = [run for run in world.runs if not row.is_for(run.work.person, None)]
                assert not {gpu for run in foreign for gpu in run.gpus} & set(row.gpus)


@settings(patient, max_examples=60)
@given(boxes())
def test_all_work_that_fits_beside_the_reservations_runs_in_the_end(world: GpuWorld) -> None:
    jobs = {one.job for one in world.waiting}
    # The last reservation ends after 20 hours; then each job has its turn, for two hours at most.
    steps = 0
    while world.waiting and steps < 6 * 20 + len(jobs) * 13:
        world.step(STEP, lasts=2 * HOUR)
        steps += 1
    assert {*world.done} | {run.work.job for run in world.runs} == jobs


@settings(patient, max_examples=60)
@given(st.integers(1, 4), st.integers(0, 10), st.integers(1, 3))
def test_the_holder_has_the_gpu_at_once_however_many_jobs_of_others_wait(
    gpus: int, after: int, arrivals: int
) -> None:
    begins, last = NOW + after * STEP, f"gpu:{gpus - 1}"
    row = reserved(machine="w1", slots=1, gpus=(last,), begins=begins, ends=begins + 3 * HOUR, person=HOLDER)
    world = GpuWorld(gpus, rows=[row])
    job = 100
    for number in range(after + 1):
        for _ in range(arrivals):
            job += 1
            limit = None if job % 2 else 1200.0
            world.waiting.append(work(job, person=job % 3, slots=1 + job % gpus, seconds=limit, priority=90))
        if number == after:
            world.waiting.append(work(1, person=HOLDER, priority=10, queued=world.now))
        world.step(STEP, lasts=2 * HOUR)
    (mine,) = [run for run in world.runs if run.work.job == 1]
    assert mine.gpus == (last,), "it would take the first one else"


@settings(patient, max_examples=30)
@given(st.integers(2, 4), people)
def test_the_other_gpus_of_the_box_are_given_out_meanwhile(gpus: int, person: int) -> None:
    row = reserved(machine="w1", slots=1, gpus=("gpu:0",), begins=NOW, ends=NOW + 12 * HOUR, person=HOLDER)
    world = GpuWorld(gpus, rows=[row])
    world.waiting = [work(job, person=person) for job in range(1, gpus + 1)]
    world.step(STEP, lasts=HOUR)
    assert sorted(run.gpus for run in world.runs) == [(name,) for name in world.names[1:]]
    assert len(world.waiting) == 1
