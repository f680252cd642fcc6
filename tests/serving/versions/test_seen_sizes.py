"""The row sizes that a model was asked for are kept over restarts."""

from pathlib import Path

from workers.serving.versions.seen_sizes import _MAX_SEEN, SeenSizesFolder


def test_seen_sizes_survive_a_restart_the_most_recent_first(tmp_path: Path) -> None:
    seen = SeenSizesFolder(tmp_path).for_model("m/../x")
    for length in (3, 7, 3):
        seen.record([(length,), (length, 2)])
    assert SeenSizesFolder(tmp_path).for_model("m/../x").recent() == [((7,), (7, 2)), ((3,), (3, 2))]
    assert seen.recent()[0] == ((3,), (3, 2))
    assert SeenSizesFolder(tmp_path).for_model("other").recent() == []


def test_only_the_most_recent_sizes_are_kept(tmp_path: Path) -> None:
    seen = SeenSizesFolder(tmp_path).for_model("m")
    for length in range(1, _MAX_SEEN + 11):
        seen.record([(length,)])
    assert len(seen.recent()) == _MAX_SEEN
    assert seen.recent()[-1] == ((11,),)


def test_a_damaged_file_is_as_good_as_none(tmp_path: Path) -> None:
    SeenSizesFolder(tmp_path).for_model("m").record([(3,)])
    (file,) = tmp_path.iterdir()
    file.write_text('[[["3"')
    seen = SeenSizesFolder(tmp_path).for_model("m")
    assert seen.recent() == []
    seen.record([(4,)])
    assert SeenSizesFolder(tmp_path).for_model("m").recent() == [((4,),)]
