from pathlib import Path

import pytest

from workers.engine.data import spilled
from workers.engine.data.reading import csv_blocks, json_lines
from workers.engine.data.spilled import Spill


@pytest.fixture
def spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spill:
    """Every column in a file, and small blocks."""
    monkeypatch.setattr(spilled, "SMALL_COLUMN_BYTES", 1)
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv_blocks, "SAMPLE_BYTES", 32)
    monkeypatch.setattr(csv_blocks, "PARSED_BYTES", 16)
    monkeypatch.setattr(csv_blocks, "MAX_ROW_BYTES", 64)
    monkeypatch.setattr(json_lines, "PART_ROWS", 3)
    (tmp_path / "columns").mkdir()
    return Spill(tmp_path / "columns", threads=2, from_bytes=1)
