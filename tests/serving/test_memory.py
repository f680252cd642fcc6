"""The memory that a model child may still use."""

from pathlib import Path

import pytest

from workers.serving.child import memory


@pytest.mark.parametrize(("limit", "free"), [("1000", 1000 - 900 + 600), ("max", None)])
def test_a_container_may_use_the_memory_of_its_inactive_page_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, free: int | None
) -> None:
    (tmp_path / "memory.max").write_text(f"{limit}\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 250\nfile 650\ninactive_file 600\n")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    assert memory.free_bytes() == free
