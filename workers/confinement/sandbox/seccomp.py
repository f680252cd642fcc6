"""Filters a process's kernel calls (seccomp) by a BPF program.

Those with which it could leave its sandbox are refused. All others stay allowed, since the libraries of
users use many. Calls that are newer than this table do not exist for the process.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from workers.system import kernel


class Machine(NamedTuple):
    """A kind of processor: its number in filters, and whether it is the second in the call table."""

    audit: int
    column: int


MACHINES = {"x86_64": Machine(0xC000003E, 0), "aarch64": Machine(0xC00000B7, 1)}
NEWEST_CALL = 462
"""The number of `mseal`, of Linux 6.10. Calls have one number on all machines from 424 on."""

_ALWAYS: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "pidfd_getfd": (438, 438),
    "kcmp": (312, 272), "move_pages": (279, 239), "migrate_pages": (256, 238),
    # mounts and namespaces
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97),
    "setns": (308, 268), "open_by_handle_at": (304, 265), "statmount": (457, 457), "listmount": (458, 458),
    # parts of the kernel that are rarely used, and had many errors
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "modify_ldt": (154, None), "uselib": (134, None), "lookup_dcookie": (212, 18), "vhangup": (153, 58),
    # memory that belongs to no process, so the watch could not count it
    "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190), "mq_open": (240, 180),
    "memfd_secret": (447, 447),
    # the machine
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "syslog": (103, 116), "iopl": (172, None),
    "ioperm": (173, None), "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip
"""The numbers of refused calls on each machine; None where it has none."""

_SHARED_FILES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
    "lremovexattr": (198, 15), "fremovexattr": (199, 16), "chown": (92, None), "fchown": (93, 55),
    "lchown": (94, None), "fchownat": (260, 54),
}  # fmt: skip
"""Landlock does not keep a process from changing modes and times of files that its user owns."""

_LEAVING_A_GROUP = {"setsid": (112, 157), "setpgid": (109, 154)}
_OF_A_PROCESS = {
    "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
}  # fmt: skip
"""Calls whose first argument is a pid; 0 is the caller."""
_OF_SOME_PROCESSES = {"setpriority": (141, 140), "ioprio_set": (251, 30)}
"""Calls whose second argument is a pid, a group or a user; 0 is the caller's."""
_TRUNCATE = {"truncate": (76, 45)}
_SOCKET, _SOCKETPAIR = (41, 198), (53, 199)
_CLONE, _CLONE3, _IOCTL = (56, 220), (435, 435), (16, 29)
_PRCTL, _PRLIMIT, _SENDTO, _SENDMSG, _SENDMMSG = (157, 167), (302, 261), (44, 206), (46, 211), (307, 269)

_PR_SET_PDEATHSIG, _PR_SET_MM = 1, 35
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_MSG_FASTOPEN = 0x20000000
# Not from the module socket, which takes a while to import.
_LOCAL, _INTERNET = 1, (2, 10)
_NETLINK, _ROUTES = 16, 0
_STREAM_AND_DATAGRAM = (0, 6, 17)
_BITS_OF_OTHER_PAIRS = 0b1010
"""No bit of the types SOCK_STREAM (1) and SOCK_SEQPACKET (5), but one of each other type that exists."""

_BITS_OF_OTHERS_THAN_STREAMS = 0b1110
"""No bit of the type SOCK_STREAM (1), but one of each other type."""


class Options(NamedTuple):
    """The calls that depend on the sandbox.

    Attributes:
        internet: may make internet sockets.
        local: may make named sockets on this machine. Pairs of connected sockets are always allowed, but
            without this, no datagram pairs, which could send to any named socket.
        keep_group: may not leave its process group; the calls report success without an effect.
        shared_user: processes outside the sandbox have the same user, so that their files and processes
            could be changed by calls that Landlock does not restrict.
        truncate: may change a file's size by its name.
        datagrams: internet sockets may be others than streams.
    """

    internet: bool
    local: bool
    keep_group: bool = False
    shared_user: bool = False
    truncate: bool = True
    datagrams: bool = True


class Instruction(NamedTuple):
    """A classic BPF instruction: operation, jumps if true and false, and its constant."""

    code: int
    if_true: int
    if_false: int
    constant: int

    def pack(self) -> bytes:
        """Return the instruction as the kernel reads it."""
        return struct.pack("=HBBI", *self)


LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, MACHINE = 0, 4
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
Program = list[Instruction]


def argument(index: int) -> int:
    """Return the offset of an argument's lower half; the kernel ignores the upper one of an int."""
    return 16 + 8 * index


def _load(offset: int) -> Instruction:
    return Instruction(LOAD, 0, 0, offset)


def _allow() -> Instruction:
    return Instruction(RETURN, 0, 0, ALLOW)


def _refuse(number: int) -> Instruction:
    """Return an instruction that has the call fail; with 0, it reports success without an effect."""
    return Instruction(RETURN, 0, 0, REFUSE | number)


def _when(test: int, constant: int, then: Program) -> Program:
    return [Instruction(test, 0, len(then), constant), *then]


def program(machine: Machine, options: Options) -> Program:
    """Return the filter for a kind of processor."""
    code = [
        _load(MACHINE),
        Instruction(EQUAL, 1, 0, machine.audit),
        Instruction(RETURN, 0, 0, KILL),
        _load(NUMBER),
        # On x86_64, also those of a second table of calls (x32).
        *_when(AT_LEAST, NEWEST_CALL + 1, [_refuse(errno.ENOSYS)]),
    ]
    for numbers, block in _blocks(options):
        number = numbers[machine.column]
        if number is not None:
            code += _when(EQUAL, number, block)
    return [*code, _allow()]


def _blocks(options: Options) -> Iterable[tuple[Sequence[int | None], Program]]:
    """Yield the numbers for each call that is not simply allowed, and what happens."""
    for numbers in _ALWAYS.values():
        yield numbers, [_refuse(errno.EPERM)]
    yield _SOCKET, _sockets(options)
    if not options.local:
        datagrams = _when(ANY_BIT, _BITS_OF_OTHER_PAIRS, [_refuse(errno.EACCES)])
        yield _SOCKETPAIR, [_load(argument(1)), *datagrams, _allow()]
    yield _CLONE, [_load(argument(0)), *_when(ANY_BIT, kernel.NAMESPACES, [_refuse(errno.EPERM)]), _allow()]
    # Its flags are in memory, which a filter cannot read. The C library then uses clone.
    yield _CLONE3, [_refuse(errno.ENOSYS)]
    yield _IOCTL, [*_unless(1, (_TIOCSTI, _TIOCLINUX), errno.EPERM), _allow()]
    # A process must not undo that it ends with its parent, but programs that ask for a signal must not fail.
    # PR_SET_MM changes where the kernel reads the command line of a process; programs do not need it.
    death = _when(EQUAL, _PR_SET_PDEATHSIG, [_refuse(0)])
    yield _PRCTL, [_load(argument(0)), *death, *_when(EQUAL, _PR_SET_MM, [_refuse(errno.EPERM)]), _allow()]
    yield _PRLIMIT, _only_own(0)
    # Sends data while it connects, for which no rule of Landlock is asked.
    for numbers, flags in ((_SENDTO, 3), (_SENDMSG, 2), (_SENDMMSG, 3)):
        fast_open = _when(ANY_BIT, _MSG_FASTOPEN, [_refuse(errno.EOPNOTSUPP)])
        yield numbers, [_load(argument(flags)), *fast_open, _allow()]
    yield from _blocks_beside_others(options)


def _blocks_beside_others(options: Options) -> Iterable[tuple[Sequence[int | None], Program]]:
    if options.keep_group:
        for numbers in _LEAVING_A_GROUP.values():
            yield numbers, [_refuse(0)]
    if not options.truncate:
        yield _TRUNCATE["truncate"], [_refuse(errno.EPERM)]
    if options.shared_user:
        for files in _SHARED_FILES.values():
            yield files, [_refuse(0)]
        for numbers in _OF_A_PROCESS.values():
            yield numbers, _only_own(0)
        for numbers in _OF_SOME_PROCESSES.values():
            yield numbers, _only_own(1)


def _only_own(index: int) -> Program:
    """Return a block that refuses all values but 0 for an argument."""
    return [_load(argument(index)), *_when(EQUAL, 0, [_allow()]), _refuse(errno.EPERM)]


def _unless(index: int, values: Iterable[int], number: int) -> Program:
    """Return the first instructions of a block that refuses some values for an argument."""
    code = [_load(argument(index))]
    for value in values:
        code += _when(EQUAL, value, [_refuse(number)])
    return code


def _sockets(options: Options) -> Program:
    """Return the block for `socket`: by family, then by protocol."""
    code = [_load(argument(0))]
    for family in _INTERNET:
        code += _when(EQUAL, family, _protocols(options))
    code += _when(EQUAL, _LOCAL, [_allow() if options.local else _refuse(errno.EACCES)])
    routes = [_load(argument(2)), *_when(EQUAL, _ROUTES, [_allow()])] if options.internet else []
    code += _when(EQUAL, _NETLINK, [*routes, _refuse(errno.EACCES)])
    return [*code, _refuse(errno.EAFNOSUPPORT)]


def _protocols(options: Options) -> Program:
    if not options.internet:
        return [_refuse(errno.EACCES)]
    code = []
    if not options.datagrams:
        code += [_load(argument(1)), *_when(ANY_BIT, _BITS_OF_OTHERS_THAN_STREAMS, [_refuse(errno.EACCES)])]
    code.append(_load(argument(2)))
    # Landlock's rules are for TCP alone, so its variants, such as MPTCP, would get around them.
    for protocol in _STREAM_AND_DATAGRAM:
        code += _when(EQUAL, protocol, [_allow()])
    return [*code, _refuse(errno.EPROTONOSUPPORT)]


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def apply(options: Options) -> None:
    """Filter calls by this process and its children, for good. It must not gain privileges any more.

    Raises:
        OSError: the kernel refused.
        NotImplementedError: there is no table for this kind of processor.
    """
    name = os.uname().machine
    if (machine := MACHINES.get(name)) is None:
        raise NotImplementedError(f"there is no filter of kernel calls for {name}")
    code = program(machine, options)
    packed = b"".join(instruction.pack() for instruction in code)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    program_filter = _Filter(len(code), ctypes.cast(buffer, ctypes.c_char_p))
    set_seccomp, by_filter = 22, 2
    kernel.prctl(set_seccomp, by_filter, ctypes.addressof(program_filter))
