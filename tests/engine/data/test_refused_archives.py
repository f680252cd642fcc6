"""Archives that are refused: names, links, bombs, damage and limits."""

import io
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.data.test_image_archives import read, refusal
from tests.features.test_images import png_of
from tests.images import folders, picture, tarred, zipped
from workers.engine.data.image_files import image_archive
from workers.engine.errors import BadData
from workers.system import archives


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../x.png", "'../x.png' in the archive leads out of its folder"),
        ("a/../../x.png", "leads out of its folder"),
        ("a\\..\\x.png", "leads out of its folder"),
        ("/etc/x.png", "has an absolute name"),
        ("C:\\x.png", "has an absolute name"),
        ("a/" * 11 + "x.png", "is inside of more than 10 folders"),
        ("a/" + "x" * 600, "at most 500 are read"),
        ("a/x\n.png", "has control characters"),
        ("a/x\x9b31m.png", r"x\x9b31m.png' in the archive has control characters"),
        ("a/x\u2028.png", "has control characters"),
        ("a/x\u202egnp.exe", r"x\u202egnp.exe' in the archive has characters in its name that change"),
        ("a/\u2066x\u2069.png", "change the direction of text"),
    ],
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_a_name_that_may_lead_elsewhere_is_refused(
    tmp_path: Path, pack: Any, name: str, message: str
) -> None:
    path = pack(tmp_path / "x", {**folders(count=2), name: picture()})
    with pytest.raises(BadData) as refused:
        read(tmp_path, path)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "message"),
    [(tarfile.SYMTYPE, "'red/x' in the archive is a link"), (tarfile.LNKTYPE, "is a link"),
     (tarfile.CHRTYPE, "is a device"), (tarfile.BLKTYPE, "is a device"), (tarfile.FIFOTYPE, "is a device"),
     (tarfile.GNUTYPE_SPARSE, "is a sparse file")],
)  # fmt: skip
def test_links_and_devices_of_a_tar_are_refused(tmp_path: Path, kind: bytes, message: str) -> None:
    path = tarred(tmp_path / "x.tar", folders(count=2))
    with tarfile.open(path, "a") as archive:
        entry = tarfile.TarInfo("red/x")
        entry.type, entry.linkname = kind, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(BadData) as refused:
        read(tmp_path, path)
    assert message in str(refused.value)


@pytest.mark.parametrize(("mode", "message"), [(stat.S_IFLNK, "is a link"), (stat.S_IFCHR, "is a device")])
def test_links_and_devices_of_a_zip_are_refused(tmp_path: Path, mode: int, message: str) -> None:
    path = zipped(tmp_path / "x.zip", folders(count=2))
    with zipfile.ZipFile(path, "a") as archive:
        entry = zipfile.ZipInfo("red/x")
        entry.external_attr = (mode | 0o644) << 16
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(BadData) as refused:
        read(tmp_path, path)
    assert f"'red/x' in the archive {message}" in str(refused.value)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_an_archive_inside_of_the_archive_is_refused(tmp_path: Path, pack: Any) -> None:
    for inner in (zipped(tmp_path / "i", {"a": b"b"}), tarred(tmp_path / "i", {"a": b"b"}, "w:gz"),
                  tarred(tmp_path / "i", {"a": b"b"})):  # fmt: skip
        path = pack(tmp_path / "x", {**folders(count=2), "red/more.png": inner.read_bytes()})
        with pytest.raises(BadData, match=r"'red/more\.png' is an archive inside of the archive"):
            read(tmp_path, path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_archive, "SMALL_BYTES", 10_000)
    zeros = {f"red/{i}.bmp": bytes(2**20) for i in range(4)}
    path = zipped(tmp_path / "x.zip", zeros)
    monkeypatch.setattr(archives, "_zip_body", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(BadData, match="200 times its own size"):
        read(tmp_path, path)
    with pytest.raises(BadData, match="200 times its own size"):
        read(tmp_path, tarred(tmp_path / "x.tar.gz", zeros, "w:gz"))


def test_a_size_that_the_directory_understates_is_damage(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", {"red/0.bmp": bytes(2**20)})
    body = bytearray(path.read_bytes())
    # The size in the directory, which `zipfile` believes.
    place = body.rindex(b"PK\x01\x02") + 24
    body[place : place + 4] = (100).to_bytes(4, "little")
    path.write_bytes(bytes(body))
    with pytest.raises(BadData, match="damaged"):
        read(tmp_path, path)


def test_a_long_header_of_a_tar_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    entry = tarfile.TarInfo("long")
    entry.type, entry.size = tarfile.XHDTYPE, 2**33
    path.write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(BadData, match="a header in the archive has"):
        read(tmp_path, path)


def test_a_tar_that_ends_early_or_has_a_damaged_header_is_damage(tmp_path: Path) -> None:
    path = tarred(tmp_path / "x.tar", folders(count=2))
    whole = path.read_bytes()
    with tarfile.open(path) as archive:
        third = archive.getmembers()[2].offset
    path.write_bytes(whole[:third])
    with pytest.raises(BadData, match="damaged or incomplete after 2 entries"):
        read(tmp_path, path)
    path.write_bytes(whole[:third] + b"x" + whole[third + 1 :])
    with pytest.raises(BadData, match="damaged or incomplete after 2 entries"):
        read(tmp_path, path)


def test_numbers_and_sizes_have_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_archive, "MAX_FILES", 5)
    for pack in (zipped, tarred):
        with pytest.raises(BadData, match="more than 5 files"):
            read(tmp_path, pack(tmp_path / "x", folders(count=2)))
    monkeypatch.undo()
    monkeypatch.setattr(image_archive, "MAX_IMAGE_BYTES", 100)
    for pack in (zipped, tarred):
        with pytest.raises(BadData, match=r"'red/red_0\.png' in the archive has .* bytes; at most 100"):
            read(tmp_path, pack(tmp_path / "x", folders(count=2)))


def test_a_huge_image_is_named(tmp_path: Path) -> None:
    message = refusal(tmp_path, {**folders(count=2), "red/huge.png": png_of(40_000, 40_000)})
    assert "'red/huge.png': an image of far too many pixels" in message


@pytest.mark.parametrize(
    "body", [b"", b"hello", b"PK\x03\x04", b"\x1f\x8b\x08", bytes(257) + b"ustar" + bytes(99)]
)
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, body: bytes) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(body)
    with pytest.raises(BadData):
        read(tmp_path, path)


@pytest.mark.parametrize("mode", ["zip", "w", "w:gz"])
def test_damaged_archives_are_read_or_refused(tmp_path: Path, mode: str) -> None:
    files = folders(count=2)
    path = tmp_path / "x"
    whole = (zipped(path, files) if mode == "zip" else tarred(path, files, mode)).read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(60):
        mutant = bytearray(whole)
        for place in rng.integers(0, len(mutant), rng.integers(1, 6)):
            mutant[place] = rng.integers(0, 256)
        path.write_bytes(bytes(mutant))
        try:
            assert read(tmp_path, path, reading={"max_bad_share": 0.9})[0].rows
        except BadData:
            continue


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tarred(tmp_path / "x.tar", folders(count=2))
    with tarfile.open(path, "a") as archive:
        body = picture()
        entry = tarfile.TarInfo("red/red_0.png")
        entry.size = len(body)
        archive.addfile(entry, io.BytesIO(body))
    with pytest.raises(BadData, match=r"'red/red_0\.png' is twice in the archive"):
        read(tmp_path, path)


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "x.zip", folders(count=2))
    body = bytearray(path.read_bytes())
    place = body.index(b"PK\x01\x02") + 8
    body[place] |= 1
    path.write_bytes(bytes(body))
    with pytest.raises(BadData, match="is encrypted"):
        read(tmp_path, path)


def test_a_name_that_is_no_unicode_is_read(tmp_path: Path) -> None:
    files = folders(count=2)
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w", encoding="latin-1", format=tarfile.USTAR_FORMAT) as archive:
        for name, body in files.items():
            entry = tarfile.TarInfo(name.replace("red/", "ré/"))
            entry.size = len(body)
            archive.addfile(entry, io.BytesIO(body))
    assert "r\ufffd" in read(tmp_path, path)[0].class_labels


def test_letters_of_all_scripts_and_joined_signs_are_ordinary_names() -> None:
    for name in (
        "a/\u05e9\u05dc\u05d5\u05dd.png",
        "a/\u0646\u0645\u06cc\u200c\u062f.png",
        "a/9.41\u202fAM.png",
    ):
        assert archives.safe_path(name) == name


def test_an_archive_of_too_many_files_is_refused_before_its_entries_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(11):
            archive.writestr(f"{number}.png", b"")
    with archives.open_zip(path, directory_bytes=1000, entries=11) as archive:
        assert len(archive.infolist()) == 11

    def read_entry(self: object, *_: object) -> None:
        raise AssertionError("an entry was read")

    monkeypatch.setattr(zipfile.ZipInfo, "__init__", read_entry)
    with (
        pytest.raises(archives.BadArchive, match="more than 10 files and folders"),
        archives.open_zip(path, directory_bytes=1000, entries=10),
    ):
        pass
