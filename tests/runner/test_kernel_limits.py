"""The limits that a runner sets for itself, in a separate process."""

import json
import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

from jobs.messages.control import ProcessLimits, Start
from jobs.messages.events import Failed
from workers.runner import kernel_limits
from workers.runner.serve import Runner

MIB = 2**20
PROGRAM = """
import json, os, resource, sys, tempfile, threading
from jobs.messages.control import ProcessLimits
from workers.system import kernel
from workers.runner import kernel_limits

limits, uid = ProcessLimits.model_validate_json(sys.argv[1]), int(sys.argv[2])
if uid:
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    kernel.drop_capabilities()
    kernel.allow_own_proc()
kernel_limits.apply(limits)
facts = {"core": resource.getrlimit(resource.RLIMIT_CORE), "cpu": resource.getrlimit(resource.RLIMIT_CPU)}
try:
    bytearray(2**28)
except MemoryError:
    facts["memory"] = "refused"
try:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(2**21))
except OSError as error:
    facts["file"] = error.errno
threading.stack_size(2**16)  # stacks count as memory
end = threading.Event()
try:
    for _ in range(40):
        threading.Thread(target=end.wait, daemon=True).start()
except RuntimeError:
    facts["threads"] = "refused"
end.set()
print(json.dumps(facts))
"""


def facts_of(limits: ProcessLimits, *, uid: int = 0) -> dict[str, object]:
    """Start a process with these limits and, unless it is 0, this user; return the operations that failed."""
    command = [sys.executable, "-c", PROGRAM, limits.model_dump_json(), str(uid)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    facts: dict[str, object] = json.loads(ended.stdout)
    return facts


def test_the_kernel_refuses_memory_and_files_above_the_limits() -> None:
    facts = facts_of(ProcessLimits(memory=64 * MIB, cpu_seconds=1800, file_bytes=MIB))
    assert (facts["memory"], facts["file"], facts["core"]) == ("refused", 27, [0, 0])
    assert facts["cpu"] in ([1801, 1806], [1802, 1807])
    assert "threads" not in facts


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_runner_with_a_user_of_its_own_has_the_same_limits_and_one_of_threads() -> None:
    facts = facts_of(ProcessLimits(memory=64 * MIB, cpu_seconds=9, file_bytes=MIB, threads=20), uid=61099)
    assert (facts["memory"], facts["file"], facts["threads"]) == ("refused", 27, "refused")


def test_a_task_whose_limits_cannot_be_set_fails_before_its_file_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_limits, "apply", Mock(side_effect=OSError("the kernel refused")))
    control, writer = Mock(), Mock()
    start = Start(task="missing", limits=ProcessLimits(memory=1, cpu_seconds=1, file_bytes=1))
    control.next_task.side_effect = [start, None]
    Runner(writer, control).serve()
    (final,) = writer.send.call_args.args
    assert isinstance(final, Failed)
    assert "the kernel refused" in final.message
