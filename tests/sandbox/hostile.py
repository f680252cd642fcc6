"""An attacker's code, which runs in sandboxes: `python hostile.py ATTACK JSON`.

All attacks are bounded, so that a sandbox that does not hold harms no machine. It needs only the standard
library of any Python 3.9, since it also runs with the Python of the system.
"""

import ctypes
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

MIB = 2**20
libc = ctypes.CDLL(None, use_errno=True)


def works(attack: Callable[..., object], *arguments: Any) -> bool:
    """Return whether an attack succeeded."""
    try:
        return attack(*arguments) is not False
    except (OSError, ValueError):
        return False


def read(path: str) -> None:
    with open(path, "rb") as file:
        file.read(1)


def create(path: str) -> None:
    with open(path, "x") as file:
        file.write("x")


def change_mode(path: str) -> bool:
    os.chmod(path, 0o777)
    return os.stat(path).st_mode & 0o777 == 0o777


def change_times(path: str) -> bool:
    os.utime(path, (1, 1))
    return os.stat(path).st_mtime == 1


def connect(family: int, address: Any, protocol: int = 0) -> None:
    with socket.socket(family, socket.SOCK_STREAM, protocol) as client:
        client.settimeout(5)
        client.connect(address)


def send_by_pair(path: str) -> None:
    # Sockets of a pair have no name, so a sandbox may allow them where it refuses others.
    for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        for sender in socket.socketpair(socket.AF_UNIX, kind):
            with sender:
                sender.sendto(b"x", path)


def listen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as server:
        server.bind(("127.0.0.1", 0))
        server.listen()


def connect_while_sending(address: Any) -> None:
    fast_open = 0x20000000
    # It must block: otherwise it is reported as unfinished.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.sendto(b"x", fast_open, address)


def call(number: int) -> bool:
    """Return whether a kernel call was not refused. Its arguments are wrong, so it has no effect."""
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), ctypes.c_long(-1), None, None, None, None)
    return ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)


def trace(pid: int) -> bool:
    attach, detach = 16, 17
    if libc.ptrace(attach, pid, None, None) != 0:
        return False
    os.waitpid(pid, 0)
    libc.ptrace(detach, pid, None, None)
    return True


def read_memory(pid: int) -> None:
    with open(f"/proc/{pid}/mem", "rb"):
        pass


def write_memory(pid: int) -> None:
    with open(f"/proc/{pid}/mem", "r+b"):
        pass


def helpers() -> set[int]:
    """Return the pids around this process."""
    present = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    in_own_namespace = len(present) < 10
    return (present if in_own_namespace else {os.getppid()}) - {os.getpid()}


def become_root() -> bool:
    os.setuid(0)
    return os.geteuid() == 0 and status("CapEff") != 0


def status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1], 16) for line in file if line.startswith(f"{name}:"))


def raise_limit(name: int, value: int) -> None:
    resource.setrlimit(name, (value, value))


def open_files(limit: int) -> None:
    copies: list[int] = []
    try:
        while len(copies) <= limit:
            copies.append(os.dup(0))
    finally:
        for copy in copies:
            os.close(copy)


def what_must_work(details: dict[str, Any]) -> dict[str, bool]:
    """Return what code in a sandbox must be able to do."""
    printed = subprocess.run([details["python"], "-S", "-c", "print(1)"], capture_output=True).stdout
    return {
        "file": works(create, "own"),
        "temporary": works(create, os.environ["TMPDIR"] + "/own"),
        "readable": works(read, details["readable"]),
        "home": os.path.isdir(os.environ["HOME"]),
        "process": printed == b"1\n",
    }


def attacks_on_files(details: dict[str, Any]) -> dict[str, dict[str, bool]]:
    unchangeable = details["unchangeable"]
    return {
        "read": {path: works(read, path) for path in details["private"]}
        | {f"{path}/": works(os.listdir, path) for path in details["folders"]},
        "write": {f"{path}/new": works(create, f"{path}/new") for path in details["closed"]}
        | {f"chmod {path}": works(change_mode, path) for path in unchangeable}
        | {f"utime {path}": works(change_times, path) for path in unchangeable}
        | {f"truncate {path}": works(os.truncate, path, 0) for path in unchangeable}
        | {f"remove {path}": works(os.unlink, path) for path in unchangeable},
    }


def attacks_by_network(details: dict[str, Any]) -> dict[str, bool]:
    return {
        **{f"port {port}": works(connect, socket.AF_INET, ("127.0.0.1", port)) for port in details["ports"]},
        "socket file": works(connect, socket.AF_UNIX, details["socket"]),
        "abstract socket": works(connect, socket.AF_UNIX, "\0" + details["abstract"]),
        "datagram of a pair": works(send_by_pair, details["datagrams"]),
        "packets": works(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
        "host of a virtual machine": works(socket.socket, 40, socket.SOCK_STREAM),
    }


def attacks_on_processes(details: dict[str, Any]) -> dict[str, dict[str, bool]]:
    victim = details["victim"]
    return {
        "signal": {
            "signal": works(os.kill, victim, signal.SIGUSR1),
            "limits": works(resource.prlimit, victim, resource.RLIMIT_NOFILE, (64, 64)),
            "priority": works(os.setpriority, os.PRIO_PROCESS, victim, 19),
            "cores": works(os.sched_setaffinity, victim, {0}),
        },
        "memory_of_others": {
            "trace": trace(victim),
            "environment": works(read, f"/proc/{victim}/environ"),
            "environment of the parent": works(read, f"/proc/{details['worker']}/environ"),
            "memory": works(read_memory, victim),
            "root": works(os.listdir, f"/proc/{victim}/root/"),
            # They have no filter of calls, and the watch does not count their memory.
            **{f"memory of {pid}": works(write_memory, pid) for pid in helpers()},
        },
        "see_processes": {"list": str(victim) in os.listdir("/proc")},
    }


def attacks_on_own_bounds(details: dict[str, Any]) -> dict[str, dict[str, bool]]:
    """Try to gain privileges, to inherit things that are not in the request, and to exceed limits."""
    limits = details["limits"]
    return {
        "privileges": {
            "root": works(become_root),
            "groups": works(os.setgroups, [0]),
            "capabilities": status("CapEff") != 0 or status("CapPrm") != 0,
            "new privileges": status("NoNewPrivs") != 1,
        },
        "calls": {name: call(number) for name, number in details["calls"].items()},
        "environment": {name: True for name in os.environ if name not in details["allowed"]}
        | {"of its start": b"secret" in open("/proc/self/environ", "rb").read()},
        "descriptors": {
            os.readlink(f"/proc/self/fd/{name}"): True
            for name in os.listdir("/proc/self/fd")
            if int(name) not in (0, 1, 2, details["kept"]) and os.path.exists(f"/proc/self/fd/{name}")
        },
        "limits": {
            "memory": works(raise_limit, resource.RLIMIT_DATA, limits["memory"] + MIB),
            "core": works(raise_limit, resource.RLIMIT_CORE, 1),
            "cpu": works(raise_limit, resource.RLIMIT_CPU, 10**6),
            "open files": works(open_files, limits["open_files"]),
        },
    }


def attacks(details: dict[str, Any]) -> None:
    """Print which attacks succeeded, by the guarantee that should refuse them."""
    inside = what_must_work(details)
    succeeded = {
        **attacks_on_files(details),
        "network": attacks_by_network(details),
        **attacks_on_processes(details),
        **attacks_on_own_bounds(details),
    }
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    facts = {"uid": os.getuid(), "groups": os.getgroups(), "forked": "tests.sandbox.hostile" in sys.modules}
    print(json.dumps({"succeeded": succeeded, "own": inside, "facts": facts}))


def connections(details: dict[str, Any]) -> None:
    """Print which connections were made with network: to the one allowed port and to others."""
    mptcp = 262
    print(
        json.dumps(
            {
                "allowed": works(connect, socket.AF_INET, ("127.0.0.1", details["allowed_port"])),
                "other": works(connect, socket.AF_INET, ("127.0.0.1", details["port"])),
                "other by MPTCP": works(connect, socket.AF_INET, ("127.0.0.1", details["port"]), mptcp),
                "own port": works(listen),
                "other while sending": works(connect_while_sending, ("127.0.0.1", details["port"])),
                "abstract socket": works(connect, socket.AF_UNIX, "\0" + details["abstract"]),
            }
        )
    )


def hold() -> None:
    time.sleep(60)


def memory(details: dict[str, Any]) -> None:
    """Allocate memory in several processes, each below its own limit."""
    for _ in range(3):
        if os.fork() == 0:
            block = bytearray(details["size"])
            for place in range(0, len(block), 4096):
                block[place] = 1
            hold()
    hold()


def files_in_memory(details: dict[str, Any]) -> None:
    """Fill memory that belongs to no process."""
    files = [os.memfd_create("bomb") for _ in range(8)]
    for file in files:
        os.write(file, b"x" * (details["size"] // 2))
    hold()


def hidden(details: dict[str, Any]) -> None:
    """Fill memory that belongs to no process, and keep the worker from measuring it."""
    set_dumpable = 4
    libc.prctl(set_dumpable, 0, 0, 0, 0)
    files_in_memory(details)


def neglect(details: dict[str, Any]) -> None:
    """Leave children that have ended, as many harmless programs do."""
    for _ in range(3):
        if os.fork() == 0:
            os._exit(0)
    time.sleep(1)


def shared_memory(details: dict[str, Any]) -> None:
    """Print how many MiB fit into the file system for shared memory."""
    written = 0
    try:
        with open("/dev/shm/bomb", "wb", buffering=0) as file:
            while written < details["most"]:
                written += file.write(b"x" * MIB) // MIB
    except OSError:
        pass
    print(written)


def fork(details: dict[str, Any]) -> None:
    for _ in range(7):
        os.fork()
    hold()


def count_forks(details: dict[str, Any]) -> None:
    """Print how many processes can be started at one time."""
    started = 0
    try:
        while started < details["most"]:
            if os.fork() == 0:
                hold()
            started += 1
    except OSError:
        pass
    print(started, flush=True)


def disk(details: dict[str, Any]) -> None:
    for number in range(32):
        with open(f"bomb-{number}", "wb") as file:
            file.write(b"x" * MIB)
    hold()


def empty_files(details: dict[str, Any]) -> None:
    for number in range(4_000):
        os.close(os.open(f"bomb-{number}", os.O_CREAT | os.O_WRONLY))
    hold()


def deleted(details: dict[str, Any]) -> None:
    """Fill a disk with files that have no name."""
    files = []
    for number in range(32):
        files.append(open(f"bomb-{number}", "wb"))
        os.unlink(f"bomb-{number}")
        files[-1].write(b"x" * MIB)
        files[-1].flush()
    hold()


def large_file(details: dict[str, Any]) -> None:
    with open("large", "wb") as file:
        for _ in range(64):
            file.write(b"x" * MIB)


def flood(details: dict[str, Any]) -> None:
    for _ in range(1024):
        os.write(1, b"x" * MIB)


def leave_behind() -> None:
    """Start a process that has left the session, ignores signals, and has no parent in the sandbox."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            try:
                os.setsid()
            except OSError:
                pass
            os.close(1)
            hold()
        os._exit(0)
    os.wait()


def survive(details: dict[str, Any]) -> None:
    leave_behind()
    # The last process must have left before this one ends.
    time.sleep(0.2)


def stay(details: dict[str, Any]) -> None:
    """Ignore every signal that can be ignored, also the one for the parent's death."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    libc.prctl(1, 0, 0, 0, 0)
    leave_behind()
    print("ready", flush=True)
    hold()


if __name__ == "__main__":
    details = json.loads(sys.argv[2])
    set_name = 15
    libc.prctl(set_name, details["name"].encode(), 0, 0, 0)
    globals()[sys.argv[1]](details)
