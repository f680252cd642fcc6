"""Equal models make equal files, whenever they are saved."""

import datetime as dt
import zipfile
from pathlib import Path

import keras
import numpy as np

from workers.engine.models.files import load_model, save_model
from workers.engine.models.zip_times import set_member_times


def network(bias: float = 0.0) -> keras.Model:
    keras.utils.set_random_seed(3)
    inputs = keras.Input((4,), name="input")
    hidden = keras.layers.Dense(8, bias_initializer=keras.initializers.Constant(bias), name="hidden")(inputs)
    return keras.Model(inputs, keras.layers.Dense(2, name="output")(hidden), name="m_m1")


def test_a_model_that_is_saved_again_makes_the_same_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first.keras", tmp_path / "second.keras"
    save_model(network(), first)
    with zipfile.ZipFile(first) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert b"1980-01-01" in archive.read("metadata.json")
    save_model(network(), second)
    assert first.read_bytes() == second.read_bytes()


def test_other_weights_make_another_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first.keras", tmp_path / "second.keras"
    save_model(network(), first)
    save_model(network(bias=1.0), second)
    assert first.read_bytes() != second.read_bytes()


def test_a_file_with_set_times_loads_with_its_weights(tmp_path: Path) -> None:
    model, path = network(bias=0.5), tmp_path / "net.keras"
    save_model(model, path)
    loaded = load_model(path, tmp_path)
    for before, after in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_times_of_all_members_are_set_in_place(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"of all"
        for name, text in (("a.txt", "a" * 100), ("folder/b.txt", "b")):
            member = zipfile.ZipInfo(name, date_time=(2026, 11, 30, 12, 30, 8))
            member.comment, member.extra = b"of one", b"\xfe\xca\x02\x00ab"
            archive.writestr(member, text, compress_type=zipfile.ZIP_DEFLATED)
    size = path.stat().st_size
    set_member_times(path, dt.datetime(1999, 12, 31, 23, 59, 58))
    assert path.stat().st_size == size
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None and archive.comment == b"of all"
        assert {info.date_time for info in archive.infolist()} == {(1999, 12, 31, 23, 59, 58)}
        assert archive.read("a.txt") == b"a" * 100
