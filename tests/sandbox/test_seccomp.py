"""The kernel call filter, executed by an interpreter for both processor kinds."""

import errno
import re
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from workers.confinement.sandbox import seccomp
from workers.confinement.sandbox.seccomp import (
    ALLOW,
    KILL,
    MACHINES,
    REFUSE,
    Options,
    Program,
)
from workers.system import kernel

HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
LARGEST = 4096
"""The most instructions that the kernel accepts."""
OWN_ROOT = Options(internet=True, local=True)
LANDLOCK = Options(internet=False, local=False, keep_group=True, shared_user=True, truncate=False)
SILENT = REFUSE
TABLES = (
    seccomp._ALWAYS, seccomp._SHARED_FILES, seccomp._LEAVING_A_GROUP, seccomp._OF_A_PROCESS,
    seccomp._OF_SOME_PROCESSES, seccomp._TRUNCATE,
    {
        "socket": seccomp._SOCKET, "socketpair": seccomp._SOCKETPAIR,
        "clone": seccomp._CLONE, "clone3": seccomp._CLONE3,
        "ioctl": seccomp._IOCTL, "prctl": seccomp._PRCTL, "prlimit64": seccomp._PRLIMIT,
        "sendto": seccomp._SENDTO, "sendmsg": seccomp._SENDMSG, "sendmmsg": seccomp._SENDMMSG,
    },
)  # fmt: skip
machines = pytest.mark.parametrize("machine", MACHINES)


def run(code: Program, machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Execute a filter as the kernel does, and return its decision."""
    data = {seccomp.NUMBER: number, seccomp.MACHINE: audit or MACHINES[machine].audit}
    for index in range(6):
        value = arguments[index] if index < len(arguments) else 0
        data[seccomp.argument(index)] = value & 0xFFFFFFFF
    accumulator, place = 0, 0
    while True:
        operation, if_true, if_false, constant = code[place]
        place += 1
        if operation == seccomp.RETURN:
            return constant
        if operation == seccomp.LOAD:
            accumulator = data[constant]
            continue
        holds = {
            seccomp.EQUAL: accumulator == constant,
            seccomp.AT_LEAST: accumulator >= constant,
            seccomp.ANY_BIT: bool(accumulator & constant),
        }[operation]
        place += if_true if holds else if_false


def call(machine: str, options: Options, numbers: Sequence[int | None], *arguments: int) -> int:
    number = numbers[MACHINES[machine].column]
    assert number is not None
    return run(seccomp.program(MACHINES[machine], options), machine, number, *arguments)


def refused(number: int) -> int:
    return REFUSE | number


@machines
@pytest.mark.parametrize("options", [OWN_ROOT, LANDLOCK])
def test_the_kernel_can_execute_the_filter(machine: str, options: Options) -> None:
    code = seccomp.program(MACHINES[machine], options)
    assert len(code) <= LARGEST
    for place, instruction in enumerate(code):
        assert max(instruction.if_true, instruction.if_false) < 256
        assert place + 1 + max(instruction.if_true, instruction.if_false) < len(code) or instruction.code == 6
        assert len(instruction.pack()) == 8


@machines
def test_the_numbers_are_those_of_the_system(machine: str) -> None:
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"{header} is missing")
    text = header.read_text()
    defined = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+) (\d+)", text)}
    compared = 0
    for table in TABLES:
        for name, numbers in table.items():
            number = numbers[MACHINES[machine].column]
            # Headers of an older kernel do not have the newest calls.
            if name in defined:
                assert number == defined[name], name
                compared += 1
    assert compared > 60


@machines
def test_calls_with_which_a_process_could_leave_are_refused(machine: str) -> None:
    for options in (OWN_ROOT, LANDLOCK):
        for name, numbers in seccomp._ALWAYS.items():
            if numbers[MACHINES[machine].column] is not None:
                assert call(machine, options, numbers) == refused(errno.EPERM), name


@machines
def test_other_calls_are_allowed(machine: str) -> None:
    read_write_execve_kill = {"x86_64": (0, 1, 59, 62), "aarch64": (63, 64, 221, 129)}[machine]
    code = seccomp.program(MACHINES[machine], LANDLOCK)
    assert {run(code, machine, number) for number in read_write_execve_kill} == {ALLOW}


@machines
def test_calls_that_are_newer_than_the_table_do_not_exist(machine: str) -> None:
    code = seccomp.program(MACHINES[machine], OWN_ROOT)
    x32 = 0x40000000
    for number in (seccomp.NEWEST_CALL + 1, 1000, x32 + 59):
        assert run(code, machine, number) == refused(errno.ENOSYS)
    assert run(code, machine, seccomp.NEWEST_CALL) == ALLOW


def test_calls_in_the_numbers_of_another_processor_end_the_process() -> None:
    i386 = 0x40000003
    assert run(seccomp.program(MACHINES["x86_64"], OWN_ROOT), "x86_64", 0, audit=i386) == KILL


@machines
def test_processes_and_threads_can_be_started_but_no_namespaces(machine: str) -> None:
    for flags in (17, 0x003D0F00):  # as fork and pthread_create pass
        assert call(machine, OWN_ROOT, seccomp._CLONE, flags) == ALLOW
    for flag in (kernel.NEW_USER, kernel.NEW_MOUNTS, kernel.NEW_NETWORK, kernel.NEW_PIDS):
        assert call(machine, OWN_ROOT, seccomp._CLONE, flag | 17) == refused(errno.EPERM)
    assert call(machine, OWN_ROOT, seccomp._CLONE3) == refused(errno.ENOSYS)


@machines
@pytest.mark.parametrize(
    ("options", "family", "protocol", "decision"),
    [
        (OWN_ROOT, socket.AF_INET, 0, ALLOW),
        (OWN_ROOT, socket.AF_INET6, socket.IPPROTO_TCP, ALLOW),
        (OWN_ROOT, socket.AF_INET, 262, refused(errno.EPROTONOSUPPORT)),
        (OWN_ROOT, socket.AF_UNIX, 0, ALLOW),
        (OWN_ROOT, 16, 0, ALLOW),
        (OWN_ROOT, 16, 9, refused(errno.EACCES)),
        (OWN_ROOT, 40, 0, refused(errno.EAFNOSUPPORT)),
        (LANDLOCK, socket.AF_INET, 0, refused(errno.EACCES)),
        (LANDLOCK, socket.AF_INET6, 0, refused(errno.EACCES)),
        (LANDLOCK, socket.AF_UNIX, 0, refused(errno.EACCES)),
        (LANDLOCK, 16, 0, refused(errno.EACCES)),
    ],
)
def test_sockets_are_decided_by_family_and_protocol(
    machine: str, options: Options, family: int, protocol: int, decision: int
) -> None:
    assert call(machine, options, seccomp._SOCKET, family, 1, protocol) == decision


@machines
def test_pairs_of_sockets_cannot_send_to_other_sockets(machine: str) -> None:
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_STREAM | flags):
        assert call(machine, LANDLOCK, seccomp._SOCKETPAIR, socket.AF_UNIX, kind) == ALLOW
    # The kernel makes raw ones datagram sockets.
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_DGRAM | flags):
        assert call(machine, LANDLOCK, seccomp._SOCKETPAIR, socket.AF_UNIX, kind) == refused(errno.EACCES)
        assert call(machine, OWN_ROOT, seccomp._SOCKETPAIR, socket.AF_UNIX, kind) == ALLOW


@machines
def test_some_arguments_are_refused(machine: str) -> None:
    paste_into_terminal, others_limits = 0x5412, 4711
    assert call(machine, OWN_ROOT, seccomp._IOCTL, 0, paste_into_terminal) == refused(errno.EPERM)
    assert call(machine, OWN_ROOT, seccomp._IOCTL, 0, 0x5401) == ALLOW
    assert call(machine, OWN_ROOT, seccomp._PRLIMIT, others_limits) == refused(errno.EPERM)
    assert call(machine, OWN_ROOT, seccomp._PRLIMIT, 0) == ALLOW
    assert call(machine, OWN_ROOT, seccomp._PRCTL, 1) == SILENT
    assert call(machine, OWN_ROOT, seccomp._PRCTL, 15) == ALLOW
    assert call(machine, OWN_ROOT, seccomp._SENDTO, 3, 0, 1, 0x20000000) == refused(errno.EOPNOTSUPP)
    assert call(machine, OWN_ROOT, seccomp._SENDTO, 3, 0, 1, 0x4000) == ALLOW


@machines
def test_beside_processes_of_the_same_user_files_group_and_priorities_stay(machine: str) -> None:
    for numbers in (*seccomp._LEAVING_A_GROUP.values(), seccomp._SHARED_FILES["fchmod"]):
        assert call(machine, LANDLOCK, numbers) == SILENT
        assert call(machine, OWN_ROOT, numbers) == ALLOW
    assert call(machine, LANDLOCK, seccomp._TRUNCATE["truncate"]) == refused(errno.EPERM)
    for numbers in seccomp._OF_A_PROCESS.values():
        assert call(machine, LANDLOCK, numbers, 4711) == refused(errno.EPERM)
        assert call(machine, LANDLOCK, numbers, 0) == ALLOW
    assert call(machine, LANDLOCK, seccomp._OF_SOME_PROCESSES["setpriority"], 0, 4711) == refused(errno.EPERM)
