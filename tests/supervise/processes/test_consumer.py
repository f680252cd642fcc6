"""The message consumer: its start, its imports and its log. Where any process is enough, it is `sleep`."""

import asyncio
import contextlib
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

from tests.supervise.conftest import QUICK, until
from workers.node.consumer import Consumer
from workers.system.environment import CODE_ROOT


async def test_a_consumer_is_started_once_the_broker_answers(tmp_path: Path) -> None:
    broker, asked = threading.Event(), list[str]()

    def send_canary(token: str) -> bool:
        asked.append(token)
        return broker.is_set()

    consumer = Consumer(
        ("sleep", "60"),
        socket=tmp_path / "hints",
        send_canary=send_canary,
        timing=replace(QUICK, canary=0.05),
    )
    running = asyncio.create_task(consumer.run())
    await until(lambda: len(asked) > 3)
    assert (consumer.pid, consumer.restarts) == (None, 0)
    broker.set()
    await until(lambda: consumer.pid)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert consumer.pid is None


def test_a_consumer_starts_without_loading_the_models() -> None:
    starts = (
        "from celery import signals; from django.apps import apps; from workers.app import app;"
        "app.loader.import_default_modules(); signals.worker_init.send(sender=app);"
        "assert not apps.apps_ready;"
        "print(*sorted(name for name in app.tasks if name.startswith('trainyard')))"
    )
    done = subprocess.run([sys.executable, "-c", starts], capture_output=True, text=True, cwd=CODE_ROOT)
    assert done.stdout.strip() == "trainyard.canary trainyard.suggest trainyard.wake", done.stderr


def test_a_consumer_logs_like_the_other_parts() -> None:
    logs = (
        "import logging; from workers.app import app;"
        "app.log.setup(loglevel=logging.WARNING, colorize=False);"
        "log = logging.getLogger('celery.worker'); log.info('quiet'); log.warning('lost token=ty_abcdef')"
    )
    done = subprocess.run([sys.executable, "-c", logs], capture_output=True, text=True, cwd=CODE_ROOT)
    (line,) = done.stderr.splitlines()
    assert "[warning  ] lost token=•••" in line
    assert line.rstrip().endswith("[celery.worker]")
