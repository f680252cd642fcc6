"""Reads pools, workers, slots and warm processes."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from django.db.models import Prefetch, QuerySet, Sum
from pydantic import TypeAdapter, ValidationError

from jobs import clock
from jobs.answers.runs.workers import WarmProcessOut, WorkerInfoOut, WorkerOut
from jobs.errors import NotFound
from jobs.messages.warm_processes import Warm
from jobs.models import Attempt, Trial, User, Worker
from jobs.queries.runs.pools import preempting_pools
from jobs.queries.runs.worker_devices import DeviceView, Slot, devices_of, shown_devices
from jobs.queries.visibility import visible_ids
from jobs.spec.labels import has_labels
from jobs.spec.plan.find_model import ROW_MEMORY
from jobs.spec.sections.resources import Resources

_WARM = TypeAdapter(list[Warm])


@dataclass(frozen=True)
class WorkerView:
    """A worker with its slots."""

    worker: Worker
    slots: list[Slot]
    alive: bool

    @property
    def state(self) -> str:
        """Return the state. A worker whose lease has expired is lost, even if its row is not updated yet."""
        return str(self.worker.state) if self.alive else "lost"

    @property
    def warm(self) -> list[Warm]:
        """Return the worker's warm processes at its last heartbeat."""
        return warm_processes(self.worker) if self.alive else []

    @property
    def warm_bytes(self) -> int:
        """Return the warm processes' memory."""
        return sum(process.memory_bytes for process in self.warm)

    @property
    def busy(self) -> int:
        """Return the number of occupied slots."""
        return sum(slot.job is not None or slot.state == "busy" for slot in self.slots)

    @property
    def runs(self) -> list[tuple[Slot, int]]:
        """Return one slot of each attempt that holds some, and how many it holds."""
        counts = Counter(slot.attempt for slot in self.slots if slot.attempt is not None)
        by_attempt = {slot.attempt: slot for slot in self.slots}
        return [(by_attempt[attempt], count) for attempt, count in counts.items()]

    @property
    def devices(self) -> list[DeviceView]:
        """Return the devices with those who use them."""
        return devices_of(self.worker, self.slots)

    @property
    def shown_devices(self) -> Sequence[DeviceView]:
        """Return the devices for its card."""
        return shown_devices(self.devices)

    @property
    def more_devices(self) -> int:
        """Return how many devices its card does not show."""
        return len(self.worker.devices) - len(self.shown_devices)


@dataclass
class Pool:
    """The workers that share a queue."""

    name: str
    workers: list[WorkerView] = field(default_factory=list)
    preemption: bool = False

    @property
    def slots(self) -> int:
        """Count the usable slots: on live workers that are not draining and take work."""
        return sum(len(view.slots) for view in self._usable)

    @property
    def busy(self) -> int:
        """Count the occupied ones of the usable slots."""
        return sum(view.busy for view in self._usable)

    @property
    def _usable(self) -> list[WorkerView]:
        return [view for view in self.workers if view.state == Worker.State.UP and not view.worker.refusal]


def warm_processes(worker: Worker) -> list[Warm]:
    """Return a worker's warm processes. Empty if its release has another format."""
    try:
        return _WARM.validate_python(worker.info.get("warm", []))
    except ValidationError:
        return []


def row_memory_of_pool(resources: Resources) -> int:
    """Return the table size that every live worker with these labels in a pool keeps in memory, in bytes.

    Workers report it for one slot. Workers from earlier releases do not: they have `ROW_MEMORY`.
    """
    labels = resources.labels or {}
    live = Worker.objects.live(resources.pool)
    workers = [worker for worker in live if has_labels(worker.labels, labels)]
    sizes = (worker.info.get("row_memory_bytes", ROW_MEMORY) for worker in workers)
    return min((size for size in sizes if isinstance(size, int)), default=ROW_MEMORY)


def workers_in_state(*, pool: str | None = None, state: str | None = None) -> QuerySet[Worker]:
    """Return a pool's workers in a state. Without a state, gone and lost ones are left out."""
    rows = Worker.objects.all() if pool is None else Worker.objects.filter(pool=pool)
    if state is not None:
        return rows.filter(state=state)
    return rows.exclude(state__in=(Worker.State.GONE, Worker.State.LOST))


def get_worker(worker_id: int) -> Worker:
    """Return a worker by id.

    Raises:
        NotFound: there is no such worker.
    """
    worker = Worker.objects.filter(pk=worker_id).first()
    if worker is None:
        raise NotFound(f"There is no worker {worker_id}.")
    return worker


def live_pools() -> list[str]:
    """Return the pools with a worker that accepts work. Without one, the default pool."""
    return sorted(set(Worker.objects.live().values_list("pool", flat=True))) or ["default"]


def pools_with_workers(user: User) -> list[Pool]:
    """Return the pools with their workers, except those that are gone or were restarted."""
    by_name: dict[str, Pool] = {}
    rows = list(Worker.objects.exclude(state=Worker.State.GONE).order_by("pool", "name", "pk"))
    rows = _without_restarted(rows)
    held = _held_slots(user, rows)
    now = clock.estimate()
    preempting = preempting_pools()
    for worker in rows:
        pool = by_name.setdefault(worker.pool, Pool(worker.pool, preemption=worker.pool in preempting))
        alive = worker.lease_until > now and worker.state != Worker.State.LOST
        pool.workers.append(WorkerView(worker, _slots_of_worker(worker, held[worker.pk], alive), alive))
    return list(by_name.values())


def _without_restarted(rows: list[Worker]) -> list[Worker]:
    """Leave out restarted lost workers. A restarted worker is a new row with the same name."""
    up = {worker.name for worker in rows if worker.state != Worker.State.LOST}
    latest = {worker.name: worker.pk for worker in rows}
    return [w for w in rows if w.state != Worker.State.LOST or (w.name not in up and latest[w.name] == w.pk)]


def _held_slots(user: User, workers: list[Worker]) -> dict[int, list[Slot]]:
    held: dict[int, list[Slot]] = defaultdict(list)
    attempts = (
        Attempt.objects.open()
        .filter(worker__in=workers)
        .select_related("job")
        # An attempt may hold many trials, but it runs one at a time.
        .prefetch_related(Prefetch("trials", Trial.objects.running()))
        .order_by("pk")
    )
    visible = visible_ids(user, [attempt.job for attempt in attempts])
    for attempt in attempts:
        job = attempt.job if attempt.job_id in visible else None
        running = list(attempt.trials.all())  # prefetched
        trial = running[0].number if running and job else None
        held[attempt.worker_id] += [Slot("busy", job, trial, attempt.pk)] * attempt.slots
    return held


def _slots_of_worker(worker: Worker, held: list[Slot], alive: bool) -> list[Slot]:
    if not alive:
        return [Slot("lost")] * worker.slots
    takes_none = worker.state == Worker.State.DRAINING or worker.refusal
    rest = "draining" if takes_none else "free"
    return held + [Slot(rest)] * max(worker.slots - len(held), 0)


def worker_out(worker: Worker) -> WorkerOut:
    """Return a worker's API representation."""
    return workers_out([worker])[0]


def workers_out(workers: Sequence[Worker]) -> list[WorkerOut]:
    """Return the workers' API representation, with one query for the slots that attempts hold."""
    held = Attempt.objects.open().filter(worker__in=workers)
    busy = dict(held.values_list("worker").annotate(total=Sum("slots")))
    return [_worker_out(worker, busy.get(worker.pk, 0)) for worker in workers]


def _worker_out(worker: Worker, slots_busy: int) -> WorkerOut:
    info = {name: fact for name, fact in worker.info.items() if name != "warm"}
    return WorkerOut(
        id=worker.pk,
        name=worker.name,
        host=worker.host,
        pool=worker.pool,
        labels=worker.labels,
        state=worker.state,
        slots=worker.slots,
        slots_busy=slots_busy,
        devices=worker.devices,
        warm=[_warm_process_out(process) for process in warm_processes(worker)],
        info=cast(WorkerInfoOut, info),
        started=worker.started,
        seen_until=worker.lease_until,
    )


def _warm_process_out(process: Warm) -> WarmProcessOut:
    return WarmProcessOut(
        kind=process.kind,
        state=process.state,
        environment=process.environment,
        devices=process.devices,
        pid=process.pid,
        since=process.started,
        memory_bytes=process.memory_bytes,
    )
