"""The output of uv is turned into one sentence with the cause."""

import pytest

from workers.confinement.environments.failures import cause

UNSATISFIABLE = "we can conclude that your requirements are unsatisfiable."


def unsolvable(because: str) -> str:
    return (
        f"error: No solution found when resolving dependencies\n  cause: Because {because}, {UNSATISFIABLE}"
    )


CONFLICT = (
    unsolvable("all versions of first depend on numpy<2 and numpy==2.5.5").removesuffix(UNSATISFIABLE)
    + "we can conclude that all versions of first cannot be used.\n"
    + f"         And because you require first, {UNSATISFIABLE}"
)
UNFIT = (
    "first==1.0 has no wheels with a matching platform tag (e.g., `manylinux_2_36_x86_64`) and you require "
    "first==1.0"
)
UNREACHABLE = """error: Request failed after 1 retry in 1.1s
  cause: Failed to fetch: http://index.example/simple/first/
  cause: error sending request for url (http://index.example/simple/first/)
  cause: client error (Connect)"""
UNTRUSTED = f"{UNREACHABLE}\n  cause: invalid peer certificate: UnknownIssuer"
FAILED_BUILD = """error: Failed to build `first==1.0`
  cause: The build backend returned an error
  cause: Call to `backend.build_wheel` failed (exit status: 1)

         [stderr]
         error: dns error, HTTP status server error (500 Internal Server Error)"""
NO_BUILD_TOOL = (
    """error: Failed to build `first==1.0`
  cause: Failed to resolve requirements from `build-system.requires`
  cause: No solution found when resolving: `tool`
  cause: Because tool was not found in the package registry and you require tool, """
    + UNSATISFIABLE
)
CLOSED = """error: Failed to read `--find-links` directory: /srv/wheels
  cause: Permission denied (os error 13)"""
CLOSED_FILE = "error: failed to open file `/srv/wheels/first.whl`: Permission denied (os error 13)"
REFUSED_ACCESS = (
    unsolvable("first was not found in the package registry and you require first")
    + "\n\nhint: An index URL (https://index.example/simple) could not be queried due to a lack of valid "
    "authentication credentials (401 Unauthorized)"
)


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (CONFLICT, "package_conflict",
         "conflict: all versions of first depend on numpy<2; this installation has numpy==2.5.5; the code "
         "asks for first."),
        (unsolvable("absent was not found in the provided package locations and you require absent"),
         "package_not_found", "no package 'absent'"),
        (unsolvable("there is no version of first==99 and you require first==99"),
         "package_not_found", "no version of first that fits 'first==99'."),
        (unsolvable("only first>=0.5 is available and you require first<0.1"),
         "package_not_found", "no version of first that fits 'first<0.1': it has only first>=0.5."),
        (unsolvable("first==1.0 has no usable wheels and you require first==1.0"),
         "package_not_found", "no wheel of first 1.0"),
        (unsolvable("first==1.0 requires Python >=3.99 and you require first"),
         "package_python", "first 1.0 needs another version of Python: >=3.99."),
        (unsolvable(UNFIT), "package_platform", "first 1.0 has no wheel for the Python and the system"),
        (FAILED_BUILD, "package_build", "first 1.0 has no wheel for this worker, and could not be built"),
        (NO_BUILD_TOOL, "package_not_found", "no package 'tool'"),
        ("error: failed\n  cause: No space left on device (os error 28)", "no_space", "disk was full"),
        (CLOSED, "package_index", "may not read /srv/wheels."),
        (CLOSED_FILE, "package_index", "may not read /srv/wheels/first.whl."),
        (UNREACHABLE, "package_index", "could not be reached"),
        (UNTRUSTED, "package_index", "is not trusted by this worker."),
        (f"{UNREACHABLE}\n  cause: invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
         "package_index", "it is that of an authority"),
        (REFUSED_ACCESS, "package_index", "the name and password in its address"),
        ("error: Failed to fetch: https://index.example/simple/first/\n"
         "  cause: HTTP status server error (503 Service Unavailable) for url (https://index.example/)",
         "package_index", "answered with the error 503 Service Unavailable."),
        ("error: something new", "packages", "something new."),
    ],
)  # fmt: skip
def test_a_failure_has_its_cause(text: str, code: str, words: str) -> None:
    failure = cause(text.splitlines(), wheels_only="", constraints=("numpy==2.5.5",))
    assert failure.code == code
    assert words in failure.message


def test_a_refused_host_is_named_before_what_follows_from_it() -> None:
    failure = cause(UNREACHABLE.splitlines(), wheels_only="", refused=["files.example"])
    assert failure.code == "package_host_refused"


def test_the_reason_for_wheels_alone_is_added() -> None:
    lines = unsolvable("first==1.0 has no usable wheels and you require first==1.0").splitlines()
    failure = cause(lines, wheels_only="the sky is blue")
    assert failure.message.endswith("Only wheels are installed here: the sky is blue.")
