from pathlib import Path

import pytest

from workers.engine.data import spilled
from workers.engine.data.reading import csv_file, json_lines
from workers.engine.data.reading.csv_columns import batches
from workers.engine.data.spilled import Spill


@pytest.fixture
def spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Spill:
    """Every column in a file, and small blocks."""
    monkeypatch.setattr(spilled, "SMALL_COLUMN_BYTES", 1)
    monkeypatch.setattr(csv_file, "BLOCK_BYTES", 64)
    monkeypatch.setattr(batches, "PART_BYTES", 1)
    monkeypatch.setattr(json_lines, "PART_ROWS", 3)
    (tmp_path / "columns").mkdir()
    return Spill(tmp_path / "columns", threads=2, from_bytes=1)
