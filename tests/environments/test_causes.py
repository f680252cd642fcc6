"""The output of pip and uv is turned into one sentence with the cause."""

import pytest

from workers.confinement.environments.failures import cause

CONFLICT = """ERROR: Cannot install first because these package versions have conflicting dependencies.

The conflict is caused by:
    first 1.0 depends on numpy<2
    The user requested (constraint) numpy==2.5.5

To fix this you could try to:"""


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (CONFLICT, "package_conflict", "first 1.0 depends on numpy<2; this installation has numpy==2.5.5."),
        ("ERROR: No matching distribution found for absent", "package_not_found", "no package 'absent'"),
        (
            "ERROR: Could not find a version that satisfies the requirement a==9 (from versions: 1.0, 2.0)\n"
            "ERROR: No matching distribution found for a==9",
            "package_not_found", "no version of a that fits 'a==9': it has 1.0, 2.0",
        ),
        ("error: No solution found when resolving dependencies\n  cause: Because absent was not found in the "
         "package registry and you require absent, we can conclude that …", "package_not_found", "'absent'"),
        ("  × No solution found when resolving dependencies:\n  ╰─▶ Because first==1.0 depends on numpy<2 "
         "and you require numpy==2.5.5, we can conclude that your requirements are unsatisfiable.",
         "package_conflict", "first==1.0 depends on numpy<2 and you require numpy==2.5.5"),
        ("error: No solution found when resolving dependencies\n  cause: Because there is no version of "
         "einops==99 and you require einops==99, we can conclude that your requirements are unsatisfiable.",
         "package_not_found", "no version of einops==99"),
        ("ERROR: Package 'x' requires a different Python: 3.13.0 not in '>=3.14'",
         "package_python", "x needs"),
        ("ERROR: x-1-cp39-win.whl is not a supported wheel on this platform.",
         "package_platform", "x-1-cp39"),
        ("Collecting x\n  Getting requirements to build wheel: finished with status 'error'",
         "package_build", "x has"),
        ("error: Failed to build `x==1.0`", "package_build", "x==1.0 has no wheel"),
        ("OSError: [Errno 28] No space left on device", "no_space", "disk was full"),
        ("WARNING: Retrying after connection broken by 'NewConnectionError'", "package_index", "be reached"),
        ("ERROR: something new", "packages", "something new."),
    ],
)  # fmt: skip
def test_a_failure_has_its_cause(text: str, code: str, words: str) -> None:
    failure = cause(text.splitlines(), wheels_only="")
    assert failure.code == code
    assert words in failure.message


def test_a_refused_host_is_named_before_what_follows_from_it() -> None:
    failure = cause(
        ["ERROR: No matching distribution found for x"], wheels_only="", refused=["files.example"]
    )
    assert failure.code == "package_host_refused"


def test_the_reason_for_wheels_alone_is_added() -> None:
    failure = cause(["ERROR: No matching distribution found for x"], wheels_only="the sky is blue")
    assert failure.message.endswith("Only wheels are installed here: the sky is blue.")
