import json
import os
import signal
import subprocess
import time
from argparse import ArgumentParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from jobs.program import ROOT
from webapp.demo.client import Client, DemoError, wait_for
from webapp.demo.digits import DIGITS
from webapp.demo.flow import Flow
from webapp.demo.people import APPROVER, TRAINER, create_demo_person, demo_login_link
from webapp.demo.scenario import Scenario
from webapp.demo.table import TABLE
from webapp.ops.home import Home
from webapp.ops.parts import management_argv

START_SECONDS = 300.0
STOP_SECONDS = 90.0
CUDA_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")
SCENARIOS = {"digits": DIGITS, "table": TABLE}


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
        parser.add_argument(
            "--flow", choices=SCENARIOS, default="digits", help="digits: images; table: a CSV file with gaps"
        )
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, help="default: 8000, with --exit a free port")
        parser.add_argument("--serving-port", type=int, help="default: 8501, with --exit a free port")

    def handle(self, *, host: str, **options: Any) -> None:
        self._began = time.monotonic()
        ends = bool(options["exit"])
        port = options["port"] if options["port"] is not None else (0 if ends else 8000)
        serving_port = (
            options["serving_port"] if options["serving_port"] is not None else (0 if ends else 8501)
        )
        urls_file = Home(settings.TRAINYARD_HOME).urls_file
        up = _start(host, port, serving_port, by_hand=not ends)
        # SIGTERM raises KeyboardInterrupt, like Ctrl-C; otherwise this process would end and `up` would not.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            urls = wait_for(lambda: _urls(up, urls_file), seconds=START_SECONDS, what="the services to start")
            self._run_flow(urls, SCENARIOS[options["flow"]], ends=ends)
            if not ends:
                up.wait()
        except DemoError as error:
            raise CommandError(f"The demo failed: {error}") from error
        except KeyboardInterrupt:
            self.stdout.write("Stopping.")
        finally:
            _stop(up)

    def _run_flow(self, urls: dict[str, Any], scenario: Scenario, *, ends: bool) -> None:
        web, serving = urls["web"], urls["serving"]
        people = [create_demo_person(TRAINER), create_demo_person(APPROVER)]
        trainer, approver = (Client(web, person.token, person.name) for person in people)
        flow = Flow(scenario, trainer, approver, web, serving, self._report, by_hand=not ends)
        if not ends:
            flow.submitted = lambda job: self._show_logins(web, job)
        request = flow.run()
        seconds = time.monotonic() - self._began
        self._report("All steps succeeded:" if request is None else "All steps but the last succeeded:")
        for name, value in (flow.facts | {"in all": f"{seconds:.0f} s"}).items():
            self._report(f"  {name:38} {value}")
        if request is not None:
            flow.wait_for_person(request)

    def _report(self, text: str) -> None:
        seconds = int(time.monotonic() - self._began)
        self.stdout.write(f"demo | {seconds // 60}:{seconds % 60:02} {text}")
        self.stdout.flush()

    def _show_logins(self, url: str, job: int) -> None:
        """Print a login link for each user; it opens the page that the user needs."""
        self._report(f"Dashboard: {url}. Each link logs in once; open them in two browser profiles.")
        self._report(f"  {TRAINER} follows the job: {url}{demo_login_link(TRAINER, f'/jobs/{job}')}")
        self._report(f"  {APPROVER} approves:      {url}{demo_login_link(APPROVER, '/approvals')}")
        self._report('The job page of this demo has a button "Kill a runner". Ctrl-C stops everything.')


def _start(host: str, port: int, serving_port: int, *, by_hand: bool = False) -> "subprocess.Popen[bytes]":
    command = management_argv("up", "--host", host, "--port", str(port), "--serving-port", str(serving_port))
    environment = os.environ | {"TRAINYARD_HOME": str(settings.TRAINYARD_HOME), "TRAINYARD_DEMO": "1"}
    if not any(map(find_spec, CUDA_PLUGINS)):
        # On a machine with a GPU, a worker takes no work without the plugin unless the CPU is asked for.
        environment.setdefault("JAX_PLATFORMS", "cpu")
    if by_hand:
        # Frequent, so that a runner can be killed in the middle of a short training.
        environment.setdefault("TRAINYARD_CHECKPOINT_SECONDS", "0.25")
    # In its own session, so that Ctrl-C reaches only this command, which then stops the rest in order.
    return subprocess.Popen(  # noqa: S603  a fixed command with checked arguments
        command, cwd=ROOT, env=environment, start_new_session=True
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
