"""Machines on one computer do not meet those of another test, and vanish with their test."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.deploy.network import Network, require_namespaces
from tests.ops.conftest import ROOT, wait_for

SERVER = "import socket\ns = socket.create_server(('', 80))\nwhile True: s.accept()[0].sendall(b'{name}')"
KILLED = """
import pathlib, sys, time
from tests.deploy.network import Network
network = Network(pathlib.Path(sys.argv[1]), {"a": 1}, {})
print(network["a"].start("sleep", ["sleep", "1000"]).pid, flush=True)
time.sleep(1000)
"""


@pytest.fixture
def networks(tmp_path: Path) -> Iterator[list[Network]]:
    """Two networks with the same names and addresses."""
    require_namespaces()
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(Network(tmp_path / name, {"server": 1, "client": 2}, {}))
        made[-1]["server"].start("server", [sys.executable, "-c", SERVER.format(name=name)])
    yield made
    for network in made:
        network.close()


def ask(network: Network) -> str:
    """Return the words of the server of a network."""
    with network.inside("client"), socket.create_connection((network.addresses["server"], 80), 1) as client:
        return client.recv(100).decode()


def answer(network: Network) -> str:
    try:
        return ask(network)
    except ConnectionRefusedError:
        return ""


def test_two_networks_with_the_same_addresses_do_not_meet(networks: list[Network]) -> None:
    answers = [wait_for(partial(answer, network), "a server") for network in networks]
    assert answers == ["first", "second"]


def test_a_machine_that_is_cut_is_silent_until_it_joins(networks: list[Network]) -> None:
    network, other = networks
    wait_for(lambda: answer(network), "the server")
    wait_for(lambda: answer(other), "the other server")
    network["server"].cut()
    with pytest.raises(TimeoutError):
        ask(network)
    assert ask(other) == "second"
    network["server"].join()
    assert wait_for(lambda: answer(network), "the server") == "first"


def test_programs_have_a_host_name_and_a_disk_of_their_machine(networks: list[Network]) -> None:
    machine = networks[0]["client"]
    assert machine.run("sh", "-c", "hostname; echo kept > /srv/file; ls /srv") == "client\nfile\n"
    assert (machine.disk / "file").read_text() == "kept\n"
    with pytest.raises(AssertionError, match="on client: no such"):
        machine.run("sh", "-c", "echo no such thing; exit 3")


def test_nothing_is_left_of_a_test_that_was_killed(tmp_path: Path) -> None:
    require_namespaces()
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as test:
        assert test.stdout is not None
        program = int(test.stdout.readline())
        assert psutil.pid_exists(program)
        os.kill(test.pid, signal.SIGKILL)

    def is_gone() -> bool:
        return not psutil.pid_exists(program) or psutil.Process(program).status() == psutil.STATUS_ZOMBIE

    wait_for(is_gone, "the program to end")
