"""Counters and histograms in Prometheus' text format, named as in TensorFlow Serving where possible."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence

Labels = tuple[tuple[str, str], ...]

# TensorFlow Serving's buckets, 10 µs to about 25 min, so that its dashboards can be used.
_LATENCY_US = [10 * 1.8**step for step in range(33)]
_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
_ROWS = [1, 2, 4, 8, 16, 32, 64, 128, 256]


def _format_labels(labels: Labels, *more: tuple[str, str]) -> str:
    inside = ",".join(f'{name}="{_escape(value)}"' for name, value in (*labels, *more))
    return f"{{{inside}}}" if inside else ""


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _is_of(line: str, models: Collection[str]) -> bool:
    """Return whether a sample belongs to one of these models, or to none. The model is the first label."""
    match = re.search(r'\{model_name="((?:[^"\\]|\\.)*)"', line)
    return match is None or match[1] in {_escape(model) for model in models}


class Counter:
    """A monotonic counter per set of labels."""

    kind = "counter"

    def __init__(self, name: str, help_: str) -> None:
        self.name, self.help = name, help_
        self._values: defaultdict[Labels, float] = defaultdict(float)

    def add(self, amount: float = 1, **labels: str) -> None:
        self.add_to(tuple(labels.items()), amount)

    def add_to(self, labels: Labels, amount: float = 1) -> None:
        self._values[labels] += amount

    def lines(self) -> Iterator[str]:
        for labels, value in self._values.items():
            yield f"{self.name}{_format_labels(labels)} {value:.15g}"


class Gauge:
    """A value that is read at each scrape."""

    kind = "gauge"

    def __init__(self, name: str, help_: str, read: Callable[[], Sequence[tuple[Labels, float]]]) -> None:
        self.name, self.help, self._read = name, help_, read

    def lines(self) -> Iterator[str]:
        for labels, value in self._read():
            yield f"{self.name}{_format_labels(labels)} {value:.15g}"


class Histogram:
    """Counts observations by upper bound, per set of labels."""

    kind = "histogram"

    def __init__(self, name: str, help_: str, bounds: Sequence[float]) -> None:
        self.name, self.help, self._bounds = name, help_, list(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: defaultdict[Labels, float] = defaultdict(float)

    def observe(self, value: float, **labels: str) -> None:
        self.observe_at(tuple(labels.items()), value)

    def observe_at(self, labels: Labels, value: float) -> None:
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._counts[labels] = [0] * (len(self._bounds) + 1)
        # `bisect_left`, because a bucket includes its upper bound.
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def lines(self) -> Iterator[str]:
        """Yield the samples, with cumulative counts as the format requires."""
        for labels, counts in self._counts.items():
            total = 0
            for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
                total += count
                upper = "+Inf" if bound == float("inf") else f"{bound:g}"
                yield f"{self.name}_bucket{_format_labels(labels, ('le', upper))} {total}"
            # All digits: of a long sum, fewer would not change with every observation.
            yield f"{self.name}_sum{_format_labels(labels)} {self._sums[labels]:.15g}"
            yield f"{self.name}_count{_format_labels(labels)} {total}"


class Metrics:
    """All metrics in the prediction server."""

    def __init__(self) -> None:
        prefix = ":tensorflow:serving:"
        self.requests = Counter(f"{prefix}request_count", "Requests by model and outcome.")
        self.latency = Histogram(f"{prefix}request_latency", "Whole request, in microseconds.", _LATENCY_US)
        self.runtime = Histogram(
            f"{prefix}runtime_latency", "One batch in its child, in microseconds.", _LATENCY_US
        )
        self.queuing = Histogram(
            f"{prefix}batching_session:queuing_latency", "Wait for the child, in microseconds.", _LATENCY_US
        )
        self.batch_rows = Histogram(
            f"{prefix}batching_session:processed_batch_size", "Rows in a batch.", _ROWS
        )
        self.load_seconds = Histogram(
            "trainyard_serving_load_seconds", "Load and warm-up of a version.", _SECONDS
        )
        self.child_restarts = Counter("trainyard_serving_child_restarts_total", "Children that died.")
        # Of the counter and the histogram of requests: made once, because each request needs them.
        self._request_labels: dict[tuple[str, str, int], tuple[Labels, Labels]] = {}
        self._families: list[Counter | Gauge | Histogram] = [
            *(self.requests, self.latency, self.runtime, self.queuing, self.batch_rows),
            *(self.load_seconds, self.child_restarts),
        ]

    def add_gauge(self, name: str, help_: str, read: Callable[[], Sequence[tuple[Labels, float]]]) -> None:
        """Add a gauge; `read` returns its value per set of labels."""
        self._families.append(Gauge(name, help_, read))

    def request_done(self, model: str, api: str, status: int, seconds: float) -> None:
        """Count one prediction request for a model that exists."""
        labels = self._request_labels.get((model, api, status))
        if labels is None:
            name, outcome = ("model_name", model), "OK" if status < 400 else str(status)
            labels = (name, ("status", outcome)), (name, ("API", api), ("entrypoint", "REST"))
            self._request_labels[model, api, status] = labels
        self.requests.add_to(labels[0])
        self.latency.observe_at(labels[1], seconds * 1e6)

    def batch_observer(self, model: str) -> Callable[[int, float, float], None]:
        """Return a callback for a batch's rows, seconds queued and seconds run."""
        labels = (("model_name", model),)

        def observe(rows: int, queued: float, ran: float) -> None:
            self.batch_rows.observe_at(labels, rows)
            self.queuing.observe_at(labels, queued * 1e6)
            self.runtime.observe_at(labels, ran * 1e6)

        return observe

    def text(self, models: Collection[str] | None = None) -> bytes:
        """Return the metrics in the text exposition format: for these models, or for all if it is None."""
        lines: list[str] = []
        for family in self._families:
            lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
            lines += (line for line in family.lines() if models is None or _is_of(line, models))
        return ("\n".join(lines) + "\n").encode()
