"""Hostile code at every level that this machine offers, against the guarantee list."""

import pytest

from jobs.messages.sandbox import MIB, Breach, Guarantee, Level, SandboxRecord
from tests.sandbox.conftest import WORKERS, Cases
from tests.sandbox.exercise import BOMBS_OF_FORKS, LIMITS, ROOTS, Results

ATTACKS = (
    Guarantee.READ, Guarantee.WRITE, Guarantee.NETWORK, Guarantee.SIGNAL, Guarantee.MEMORY_OF_OTHERS,
    Guarantee.SEE_PROCESSES, Guarantee.PRIVILEGES, Guarantee.CALLS, Guarantee.ENVIRONMENT,
    Guarantee.DESCRIPTORS, Guarantee.LIMITS,
)  # fmt: skip
BOMBS = {
    "memory": Breach.MEMORY,
    "files_in_memory": Breach.MEMORY,
    "hidden": Breach.MEMORY,
    "fork": Breach.PROCESSES,
    "disk": Breach.DISK,
    "empty_files": Breach.DISK,
    "deleted": Breach.DISK,
    "flood": Breach.OUTPUT,
}
OTHERS_IN_SIGHT = (
    Guarantee.READ,
    Guarantee.WRITE,
    Guarantee.NETWORK,
    Guarantee.SIGNAL,
    Guarantee.MEMORY_OF_OTHERS,
    Guarantee.SEE_PROCESSES,
    Guarantee.CALLS,
)


def record(case: Results) -> SandboxRecord:
    return SandboxRecord.model_validate(case.record)


@pytest.mark.parametrize("guarantee", ATTACKS)
def test_no_attack_succeeds_that_the_level_guarantees_against(case: Results, guarantee: Guarantee) -> None:
    assert case.attacks.keys() == set(ATTACKS)
    if not record(case).holds(guarantee):
        pytest.skip("not guaranteed at this level")
    assert [name for name, succeeded in case.attacks[guarantee].items() if succeeded] == []


def test_every_attack_succeeds_where_nothing_is_guaranteed(cases: Cases) -> None:
    """Otherwise an attack that never works would prove nothing."""
    results = cases.results("user", Level.PROCESS)
    needs_root = {"packets"}
    for guarantee in OTHERS_IN_SIGHT:
        assert not record(results).holds(guarantee)
        attacks = results.attacks[guarantee]
        if guarantee is Guarantee.CALLS:  # most need privileges in any case
            assert {name for name, succeeded in attacks.items() if succeeded} > {
                "ptrace",
                "unshare",
                "keyctl",
            }
        else:
            succeeded = [name for name, succeeded in attacks.items() if succeeded]
            assert succeeded, guarantee
            assert guarantee is Guarantee.WRITE or set(attacks) - set(succeeded) <= needs_root, guarantee
    assert all(results.connections.values()), results.connections


def test_code_can_work_in_its_own_folders_and_start_processes_and_threads(case: Results) -> None:
    assert case.own and all(case.own.values()), case.own


@pytest.mark.parametrize("worker", WORKERS)
def test_a_fork_that_may_not_join_bubblewrap_is_a_new_interpreter_there(cases: Cases, worker: str) -> None:
    case = cases.results(worker, Level.BUBBLEWRAP, forked=True)
    new_interpreter = case.without_joining
    assert case.facts["forked"] and not new_interpreter["facts"]["forked"]
    assert new_interpreter["own"] == case.own
    assert not any(any(attacks.values()) for attacks in new_interpreter["succeeded"].values())


def test_the_record_is_what_the_run_had(case: Results) -> None:
    sandbox = record(case)
    assert not sandbox.network
    assert sandbox.uid in (None, case.facts["uid"])
    if sandbox.uid is not None:
        assert case.facts["groups"] == []
    assert sandbox.seccomp == (sandbox.level is not Level.PROCESS)
    assert bool(sandbox.landlock) == (sandbox.level is Level.LANDLOCK)


def test_with_network_only_the_asked_port_can_be_reached(case: Results) -> None:
    connected = SandboxRecord.model_validate(case.connections_record)
    assert connected.network
    assert case.connections["allowed"]
    if not connected.holds(Guarantee.PORTS):
        pytest.skip("not guaranteed at this level")
    connected_to = {name for name, succeeds in case.connections.items() if succeeds}
    # Sockets with an abstract name need a rule of their own.
    assert connected_to - (set() if connected.landlock >= 6 else {"abstract socket"}) == {"allowed"}


def test_a_run_that_uses_too_much_is_ended_with_the_cause(case: Results) -> None:
    # The others are measured in the same way.
    assert case.bombs.keys() == (set(BOMBS_OF_FORKS) if case.facts["forked"] else BOMBS.keys())
    for bomb, result in case.bombs.items():
        assert result.breach == BOMBS[bomb], result
        assert result.message.startswith("this run was ended: ")
        assert result.status < 0
        assert result.left == 0, bomb
        assert result.received <= LIMITS.output_of_all
        if bomb == "flood":
            assert result.received == LIMITS.output_of_all


def test_a_run_with_children_that_have_ended_is_not_ended(case: Results) -> None:
    assert case.harmless is not None
    assert (case.harmless.breach, case.harmless.status) == (None, 0), case.harmless.message


def test_the_kernel_limits_processes_where_it_counts_them_for_the_run_alone(case: Results) -> None:
    sandbox = record(case)
    if sandbox.uid is None and sandbox.level not in ROOTS:
        pytest.skip("other processes have the same user")
    assert case.threads < 64


def test_shared_memory_is_limited(case: Results) -> None:
    assert case.shared_memory * MIB <= LIMITS.memory_of_all // 4
    assert bool(case.shared_memory) == (record(case).level in ROOTS)


def test_a_file_cannot_be_larger_than_its_limit(case: Results) -> None:
    assert case.statuses["large file"] != 0
    assert case.left["large"] <= MIB


@pytest.mark.parametrize(
    ("guarantee", "ends"),
    [
        (Guarantee.SURVIVE, {"its own end", "a kill", "a kill of the process outside"}),
        (Guarantee.OUTLIVE, {"its worker", "its fork server"}),
    ],
)
def test_no_process_survives(case: Results, guarantee: Guarantee, ends: set[str]) -> None:
    if not record(case).holds(guarantee):
        pytest.skip("not guaranteed at this level")
    left_by_end = {end: left for end, left in case.left.items() if end in ends}
    assert left_by_end == dict.fromkeys(ends - (set() if case.facts["forked"] else {"its fork server"}), 0)


def test_the_status_is_that_of_the_command(case: Results) -> None:
    assert case.statuses["survive"] == 0
    assert case.statuses["stay"] < 0


def test_the_temporary_folder_is_deleted(case: Results) -> None:
    assert not case.temporary_left
