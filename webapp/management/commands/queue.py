import json
from argparse import ArgumentParser
from collections.abc import Iterator

from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError

from jobs.answers.runs.pool_queues import PoolQueueOut
from jobs.queries import compatibility
from jobs.queries.runs.pool_queues import pool_queues
from jobs.spec.labels import labels_text
from jobs.worker_options import pool_name
from webapp.templatetags.words import duration


class Command(BaseCommand):
    help = "Prints how many jobs and trials wait in each pool, since when, and the slots of its workers."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--pool", type=pool_name, help="only this pool, also if it is empty")
        parser.add_argument("--json", action="store_true", help="print the answer of GET /queue/pools")

    def handle(self, *, pool: str | None, json: bool, **_: object) -> None:
        try:
            if problem := compatibility.problem():
                raise CommandError(problem)
            queues = pool_queues(pool)
        except OperationalError as error:
            raise CommandError(f"The database cannot be read: {str(error).splitlines()[0]}") from error
        for line in [_as_json(queues)] if json else _lines(queues):
            self.stdout.write(line)


def _as_json(queues: list[PoolQueueOut]) -> str:
    return json.dumps({"items": [queue.model_dump() for queue in queues], "next": None}, indent=1)


def _lines(queues: list[PoolQueueOut]) -> Iterator[str]:
    if not queues:
        yield "Nothing waits, and no worker runs."
    for queue in queues:
        if not (queue.queued or queue.workers):
            yield f"{queue.pool}: nothing waits in this pool, and it has no worker."
            continue
        since = "" if queue.oldest_seconds is None else f" for up to {duration(queue.oldest_seconds)}"
        yield (
            f"{queue.pool}: {queue.queued} waiting{since}, {queue.free} of {queue.slots} slots free, "
            f"{queue.workers} {'worker' if queue.workers == 1 else 'workers'}"
        )
        for part in queue.labels:
            if part.labels:
                asks = "asks" if part.queued == 1 else "ask"
                yield f"  {part.queued} {asks} for {labels_text(part.labels)}"
