import json
import os
import signal
import subprocess
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from webapp.demo.client import Client, DemoError, wait_for
from webapp.demo.flow import Flow
from webapp.demo.people import APPROVER, TRAINER, DemoPerson, create_demo_person
from webapp.ops.home import Home
from webapp.ops.parts import ROOT

START_SECONDS = 300.0
STOP_SECONDS = 90.0


class Command(BaseCommand):
    help = "Starts everything and runs the whole workflow on real data with two demo users."
    # The parts run them.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--exit",
            action="store_true",
            help="stop everything at the end; exit status 0 if all steps succeeded",
        )
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, help="default: 8000, with --exit a free port")
        parser.add_argument("--serving-port", type=int, help="default: 8501, with --exit a free port")

    def handle(self, *, host: str, **given: Any) -> None:
        self._began = time.monotonic()
        ends = bool(given["exit"])
        port = given["port"] if given["port"] is not None else (0 if ends else 8000)
        serving_port = given["serving_port"] if given["serving_port"] is not None else (0 if ends else 8501)
        urls_file = Home(settings.TRAINYARD_HOME).urls_file
        up = _start(host, port, serving_port)
        # SIGTERM raises KeyboardInterrupt, like Ctrl-C; otherwise this process would end and `up` would not.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            urls = wait_for(lambda: _urls(up, urls_file), seconds=START_SECONDS, what="the services to start")
            self._show(urls, ends=ends)
            if not ends:
                up.wait()
        except DemoError as error:
            raise CommandError(f"The demo failed: {error}") from error
        except KeyboardInterrupt:
            self.stdout.write("Stopping.")
        finally:
            _stop(up)

    def _show(self, urls: dict[str, Any], *, ends: bool) -> None:
        people = [create_demo_person(TRAINER), create_demo_person(APPROVER)]
        if not ends:
            self._show_logins(urls["web"], people)
        trainer, approver = (Client(urls["web"], person.token, person.name) for person in people)
        flow = Flow(trainer, approver, urls["serving"], self._report)
        flow.run()
        seconds = time.monotonic() - self._began
        self._report("All steps succeeded:")
        for name, value in (flow.facts | {"in all": f"{seconds:.0f} s"}).items():
            self._report(f"  {name:38} {value}")
        if not ends:
            # A link works once, so those from before the flow may have been used.
            self._show_logins(urls["web"], [create_demo_person(TRAINER), create_demo_person(APPROVER)])

    def _report(self, text: str) -> None:
        seconds = int(time.monotonic() - self._began)
        self.stdout.write(f"demo | {seconds // 60}:{seconds % 60:02} {text}")
        self.stdout.flush()

    def _show_logins(self, url: str, people: list[DemoPerson]) -> None:
        self._report(f"Dashboard: {url} — log in as each user in a separate browser profile:")
        for person in people:
            self._report(f"  {person.name:6} {url}{person.login}")
        self._report("Ctrl-C stops everything.")


def _start(host: str, port: int, serving_port: int) -> "subprocess.Popen[bytes]":
    arguments = ["up", "--host", host, "--port", str(port), "--serving-port", str(serving_port)]
    environment = os.environ | {"TRAINYARD_HOME": str(settings.TRAINYARD_HOME)}
    # In its own session, so that Ctrl-C reaches only this command, which then stops the rest in order.
    return subprocess.Popen(  # noqa: S603  a fixed command with checked arguments
        [sys.executable, str(ROOT / "manage.py"), *arguments], env=environment, start_new_session=True
    )


def _urls(up: "subprocess.Popen[bytes]", file: Path) -> dict[str, Any] | None:
    if up.poll() is not None:
        raise DemoError(f"the services ended with status {up.returncode}; see the lines above")
    try:
        urls: dict[str, Any] = json.loads(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
    # The file may be of an earlier run that was killed.
    return urls if urls.get("pid") == up.pid else None


def _stop(up: "subprocess.Popen[bytes]") -> None:
    if up.poll() is None:
        up.send_signal(signal.SIGINT)
        try:
            up.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            up.kill()
            up.wait()
