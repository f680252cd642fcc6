"""Declares the answers about workers, with their slots, devices and warm processes."""

from typing import Annotated, NotRequired, TypedDict

from pydantic import Field

from jobs.answers.base import Answer, Stored, Time
from jobs.messages.sandbox import LevelState


class WarmProcessOut(Answer):
    """A process that a worker starts before it is needed: a fork server or a standby runner."""

    kind: str
    state: str
    environment: str
    devices: str | None
    pid: int
    since: Time
    memory_bytes: int


class GpuProcessOut(TypedDict):
    """A process on a GPU that the worker did not start. Its command line is not read."""

    pid: Annotated[
        int | None,
        Field(
            description="null: memory of processes that the driver does not list, such as other containers'."
        ),
    ]
    user: Annotated[str, Field(description="Empty if it is unknown.")]
    program: Annotated[str, Field(description="Its program's name, empty if it is unknown.")]
    same_user: Annotated[bool, Field(description="Whether it has the user of the worker.")]
    since: Annotated[
        float, Field(description="When the worker first saw it on the GPU, in seconds since 1970, UTC.")
    ]
    memory_bytes: NotRequired[int]


class GpuPartOut(TypedDict):
    """A part (MIG) of a divided GPU."""

    name: str
    kind: str
    uuid: str
    memory_bytes: NotRequired[int]
    memory_used: NotRequired[int]


class DeviceOut(TypedDict):
    """A device of a worker."""

    name: str
    kind: Annotated[str, Field(description="`cpu`, or the model of the GPU.")]
    uuid: NotRequired[Annotated[str, Field(description="Of a GPU, as `nvidia-smi` shows it.")]]
    memory_bytes: NotRequired[int]
    memory_used: NotRequired[int]
    load: NotRequired[Annotated[float, Field(description="From 0 to 1.")]]
    temperature: NotRequired[Annotated[float, Field(description="In degrees Celsius.")]]
    power_watts: NotRequired[float]
    pci: NotRequired[Annotated[str, Field(description="Its address on the PCI bus; GPUs are in its order.")]]
    parts: NotRequired[Annotated[list[GpuPartOut], Field(description="Of a GPU that is divided (MIG).")]]
    attempts: NotRequired[Annotated[list[int], Field(description="The attempts that hold the GPU.")]]
    runs_bytes: NotRequired[Annotated[int, Field(description="Memory that runs of this worker hold.")]]
    others_bytes: NotRequired[
        Annotated[int, Field(description="Memory that processes hold which the worker did not start.")]
    ]
    others: NotRequired[
        Annotated[
            list[GpuProcessOut],
            Field(
                description="Processes that the worker did not start, the largest first; missing if the "
                "driver lists none."
            ),
        ]
    ]


class ConsumerOut(TypedDict):
    """The process that reads the queue."""

    pid: int | None
    proven: bool
    silent_seconds: float
    restarts: int


class IsolationOut(TypedDict):
    """Whether the worker's runners have users of their own."""

    level: Annotated[str, Field(description="own_user, or shared: they have the user of the service.")]
    message: str


class WorkerInfoOut(TypedDict, total=False):
    """The worker's machine, as reported by its last heartbeat."""

    python: str
    packages: dict[str, str]
    versions: dict[str, str]
    cores: int
    load: float
    memory_bytes: int
    memory_used: int
    consumer: ConsumerOut
    runners: int
    event_lag_seconds: Annotated[
        float, Field(description="The age of the oldest event of its runs that is not recorded yet.")
    ]
    no_space: str
    isolation: IsolationOut
    sandbox: Annotated[
        list[LevelState],
        Field(
            description="The levels of sandbox for code of users, the strongest first; missing while the "
            "worker is finding them."
        ),
    ]
    row_memory_bytes: Annotated[
        int, Field(description="The size up to which a run of one slot keeps the rows of a table in memory.")
    ]
    no_gpu: Annotated[str, Field(description="Why GPUs of the machine are not used.")]
    unsupported_gpus: Annotated[
        list[str],
        Field(description="Why JAX cannot use GPUs that this worker leaves out, one sentence for each."),
    ]
    refuses: Annotated[
        str,
        Field(
            description="Why it takes no work: a GPU that it should use cannot be used. Missing if it takes "
            "work."
        ),
    ]
    gpu_share: Annotated[
        float,
        Field(
            description="The share of a GPU that each run takes at its start, as the operator chose; missing "
            "if runs allocate on demand."
        ),
    ]
    keeps_reserved_gpus: Annotated[
        bool,
        Field(
            description="Whether its runs leave GPUs alone that are reserved for others. Missing without "
            "GPUs and in earlier releases."
        ),
    ]
    idle_exit_seconds: Annotated[float, Field(description="After so long without work it ends.")]
    max_life_seconds: Annotated[float, Field(description="It has ended so long after its start.")]
    seconds_left: Annotated[float, Field(description="The rest of its life at its last heartbeat.")]
    ending: Annotated[str, Field(description="Why it drains and ends; missing while it does not.")]
    no_gpu_in_sandbox: Annotated[
        list[str],
        Field(
            description="Why runs with code of users get no GPU, and why not several at once; empty words if "
            "they do, and empty for a worker without GPUs."
        ),
    ]


class WorkerOut(Answer):
    """A worker."""

    id: int
    name: str
    host: str
    pool: str
    labels: dict[str, str] = Field(description="Jobs may ask for workers with these.")
    state: str = Field(description="up, draining, lost or gone.")
    slots: int
    slots_busy: int
    devices: Stored[list[DeviceOut]]
    warm: list[WarmProcessOut]
    info: Stored[WorkerInfoOut]
    started: Time
    seen_until: Time = Field(description="When the worker counts as lost unless it reports again.")
