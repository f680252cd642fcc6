"""Many callers of /readyz share one check."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from webapp import health
from webapp.health import SharedCheck


def test_callers_that_ask_at_the_same_time_share_one_check(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, release, checks = threading.Event(), threading.Event(), 0

    def hangs() -> bool:
        nonlocal checks
        checks += 1
        entered.set()
        release.wait(30)
        return False

    monkeypatch.setattr(health, "PARTS", {"database": hangs})
    shared = SharedCheck()
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(shared.missing_parts)
        assert entered.wait(30)
        monkeypatch.setattr(health, "SHARED_WAIT", 0.01)
        assert pool.submit(shared.missing_parts).result(30) == ["database"], "the part that hangs is named"
        assert checks == 1
        monkeypatch.setattr(health, "SHARED_WAIT", 30)
        others = [pool.submit(shared.missing_parts) for _ in range(3)]
        release.set()
        assert [answer.result(30) for answer in (first, *others)] == [["database"]] * 4
    before = checks
    assert shared.missing_parts() == ["database"]
    assert checks == before + 1, "the next caller checks again"


def test_an_error_of_the_check_reaches_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> bool:
        raise ValueError("unforeseen")

    monkeypatch.setattr(health, "PARTS", {"database": fails})
    shared = SharedCheck()
    for _ in range(2):
        with pytest.raises(ValueError, match="unforeseen"):
            shared.missing_parts()
