"""Archives of images: the data sets that they become, refusals, and files that are left out."""

import io
import json
import stat
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jobs.kinds.profile.payload import ProfileTask
from jobs.messages.task import DatasetFile
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.profile import Profile
from jobs.spec.sections.data import DataSpec
from tests.engine.helpers import RecordingReport
from tests.features.test_images import png_of
from tests.images import folders, picture, tarred, zipped
from workers.engine.data.dataset import load_dataset
from workers.engine.data.image_files import image_archive
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadData, BadSpec
from workers.engine.tasks.profile import run
from workers.features.images import decode
from workers.system import archives


def read(folder: Path, path: Path, **task: Any) -> tuple[Profile, DatasetFile, RecordingReport]:
    report = RecordingReport(folder)
    result = run(ProfileTask(folder=str(folder), source="images", path=str(path), **task), report)
    file = DatasetFile(path=str(folder / result["path"]), digest=result["digest"], profile=result["profile"])
    return Profile.model_validate(result["profile"]), file, report


def read_files(folder: Path, files: dict[str, bytes], **task: Any) -> Profile:
    return read(folder, zipped(folder / "images.zip", files), **task)[0]


def refusal(folder: Path, files: dict[str, bytes], **task: Any) -> str:
    with pytest.raises(BadData) as refused:
        read_files(folder, files, **task)
    return str(refused.value)


def test_class_folders_become_images_of_one_size_with_labels(tmp_path: Path) -> None:
    files = folders(count=4)
    profile, file, report = read(tmp_path, zipped(tmp_path / "images.zip", files))
    assert (profile.kind, profile.task, profile.target, profile.features) == (
        "image", "multiclass", "label", ("image",),
    )  # fmt: skip
    assert (profile.input_shape, profile.class_labels) == ((12, 12, 3), ("blue", "green", "red"))
    assert (profile.class_counts, profile.rows) == ((4, 4, 4), 12)
    assert profile.images is not None
    assert profile.images.formats == {"PNG": 12}
    arrays = read_arrays(Path(file.path))
    paths = sorted(files)
    assert arrays["x"].dtype == np.uint8
    np.testing.assert_array_equal(
        arrays["x"], np.stack([decode(files[path], profile.images.shape) for path in paths])
    )
    assert arrays["y"].tolist() == [profile.class_labels.index(path.split("/")[0]) for path in paths]
    assert profile.preview[0] == {"file": "blue/blue_0.png", "label": "blue"}
    assert "thumbnails" in [call[0][0] for call in report.of("artifact")]


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_gives_the_same_bytes_as_a_zip(tmp_path: Path, mode: str) -> None:
    files = folders(count=3)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    # The type does not follow from the name.
    by_zip = read(tmp_path / "a", zipped(tmp_path / "images.tar", files))[1]
    by_tar = read(tmp_path / "b", tarred(tmp_path / "images.zip", files, mode))[1]
    assert by_zip.digest == by_tar.digest


def test_the_size_is_the_median_with_a_bound(tmp_path: Path) -> None:
    sizes = [(40, 20), (60, 30), (600, 300), (800, 500), (900, 600)]
    files = {f"{'ab'[i % 2]}/{i}.png": picture(size=size) for i, size in enumerate(sizes)}
    profile = read_files(tmp_path, files)
    assert profile.input_shape == (112, 224, 3)
    assert profile.images is not None
    assert profile.images.widths.model_dump() == {"min": 40, "median": 600, "max": 900}
    assert profile.images.heights.model_dump() == {"min": 20, "median": 300, "max": 600}


def test_a_person_chooses_size_and_fit(tmp_path: Path) -> None:
    options = {"images": {"height": 6, "width": 9, "fit": "crop"}}
    profile = read_files(tmp_path, folders(count=2), reading=options)
    assert profile.input_shape == (6, 9, 3)
    assert profile.images is not None
    assert profile.images.shape.fit == "crop"


def test_the_proposed_size_fits_into_the_memory_and_a_chosen_one_must(tmp_path: Path) -> None:
    limits = FileLimits(expanded_bytes=12 * 3 * 36)
    files = folders(count=4)
    assert read_files(tmp_path, files, limits=limits).input_shape == (6, 6, 3)
    chosen = {"images": {"height": 7, "width": 7}}
    assert "12 images of 7 × 7 pixels expands to" in refusal(tmp_path, files, limits=limits, reading=chosen)


def test_grey_images_have_one_channel_unless_one_is_coloured(tmp_path: Path) -> None:
    grey = {f"{'ab'[i % 2]}/{i}.png": picture(mode=mode) for i, mode in enumerate(["L", "LA", "I;16", "1"])}
    assert read_files(tmp_path, grey).input_shape == (8, 12, 1)
    assert read_files(tmp_path, grey | {"a/x.png": picture()}).input_shape == (8, 12, 3)


def test_hidden_files_are_left_out_and_counted(tmp_path: Path) -> None:
    hidden = {
        "__MACOSX/red/._red_0.png": b"x", "red/.DS_Store": b"x", "blue/Thumbs.db": b"x",
        ".git/config": b"x", "desktop.ini": b"x",
    }  # fmt: skip
    profile = read_files(tmp_path, folders(count=2) | hidden)
    assert profile.rows == 6
    assert profile.images is not None
    assert profile.images.hidden == 5


def test_outer_folders_are_a_column_that_can_split_the_rows(tmp_path: Path) -> None:
    files = {
        f"{part}/{name}": body
        for part in ("train", "validation", "test")
        for name, body in folders(count=2, seed=len(part)).items()
    }
    profile, file, _ = read(tmp_path, zipped(tmp_path / "images.zip", files))
    assert profile.target == "label"
    spec = DataSpec.model_validate({"dataset": "d", "split": {"column": "folder"}})
    parts = load_dataset(file, spec).parts
    assert (len(parts.train), len(parts.validation), len(parts.test)) == (6, 6, 6)


LABELS = b"image,width_mm,species\na.png,1.5,cat\nsub/b.png,2.5,dog\nc.png,3.5,cat\nd.png,4.5,dog\n"
LABELLED = {f"data/{name}": picture() for name in ("a.png", "sub/b.png", "c.png", "d.png")}


def test_a_table_of_labels_beside_the_images_gives_the_targets(tmp_path: Path) -> None:
    files = {"data/labels.csv": LABELS, **LABELLED}
    profile, file, _ = read(tmp_path, zipped(tmp_path / "images.zip", files))
    assert (profile.target, profile.class_labels) == ("species", ("cat", "dog"))
    columns = {column.name: (column.role, column.type) for column in profile.columns}
    assert columns == {
        "image": ("feature", "image"), "file": ("id", "category"), "folder": ("ignore", "category"),
        "width_mm": ("ignore", "number"), "species": ("target", "category"),
    }  # fmt: skip
    dataset = load_dataset(file, DataSpec.model_validate({"dataset": "d", "target": "width_mm"}))
    assert (dataset.task, dataset.y[:, 0].tolist()) == ("regression", [1.5, 3.5, 4.5, 2.5])


def test_another_column_of_the_table_can_be_the_target(tmp_path: Path) -> None:
    files = {"data/labels.csv": LABELS, **LABELLED}
    profile = read_files(tmp_path, files, target="width_mm")
    assert (profile.task, profile.target, profile.outputs) == ("regression", "width_mm", 1)
    assert profile.images is not None
    assert profile.images.thumbnails.labels == ("",)
    assert "no column 'size'" in refusal(tmp_path, files, target="size")


def test_images_without_a_label_and_labels_without_an_image_are_damage(tmp_path: Path) -> None:
    files = {"data/labels.csv": LABELS, **LABELLED}
    extra = {"data/e.png": picture()}
    assert "'data/e.png': it has no row in data/labels.csv" in refusal(tmp_path, files | extra)
    fewer = {name: body for name, body in files.items() if name != "data/c.png"}
    assert "row 3 of data/labels.csv names it, but the archive lacks it" in refusal(tmp_path, fewer)
    profile = read_files(tmp_path, fewer | extra, reading={"max_bad_share": 0.5})
    assert (profile.rows, profile.bad_rows) == (3, 2)
    assert "no column of labels.csv has the names" in refusal(
        tmp_path, {"labels.csv": b"a,b\nx,y\n", **LABELLED}
    )


def test_a_damaged_image_is_named_and_left_out_up_to_the_stated_share(tmp_path: Path) -> None:
    files = folders(count=4)
    whole = files["green/green_1.png"]
    files["green/green_1.png"] = whole[: len(whole) // 2]
    files["red/notes.txt"] = b"hello"
    assert "'red/notes.txt': no image in one of the formats" in refusal(tmp_path, files)
    files.pop("red/notes.txt")
    assert "'green/green_1.png': a damaged PNG image" in refusal(tmp_path, files)
    assert "at most a share of 0.05" in refusal(tmp_path, files, reading={"max_bad_share": 0.05})
    profile, _, report = read(tmp_path, tmp_path / "images.zip", reading={"max_bad_share": 0.1})
    assert (profile.rows, profile.bad_rows, profile.class_counts) == (11, 1, (4, 3, 4))
    assert "bad_rows" in [call[0][0] for call in report.of("artifact")]
    lines = (tmp_path / "bad_rows.csv").read_text().splitlines()
    assert lines[0] == "number,reason,image"
    assert lines[1].startswith("1,") and lines[1].endswith(",green/green_1.png")


def test_an_image_outside_of_all_folders_has_no_class(tmp_path: Path) -> None:
    message = refusal(tmp_path, folders(count=2) | {"x.png": picture()})
    assert "'x.png': it is in no class folder, and there is no labels.csv" in message


def test_thumbnails_are_bounded_and_belong_to_their_labels(tmp_path: Path) -> None:
    files = {f"{label:03}/{i}.png": picture("PNG", "L") for label in range(60) for i in range(10)}
    profile = read_files(tmp_path, files)
    assert profile.images is not None
    layout = profile.images.thumbnails
    assert (len(layout.labels), {*layout.counts}, layout.labels[0]) == (50, {8}, "000")
    sheet = (tmp_path / "thumbnails.jpg").read_bytes()
    assert Image.open(io.BytesIO(sheet)).size == (8 * layout.side, 50 * layout.side)
    assert len(json.dumps(profile.model_dump(mode="json"))) < 100_000


def test_equal_images_of_one_class_are_counted(tmp_path: Path) -> None:
    files = {
        "a/1.png": picture(),
        "a/2.bmp": picture("BMP"),
        "b/1.png": picture(),
        "b/2.png": picture(size=(9, 9)),
    }
    assert read_files(tmp_path, files).duplicates == 1


def test_an_image_is_the_only_feature(tmp_path: Path) -> None:
    files = {"data/labels.csv": LABELS, **LABELLED}
    assert "so the only one is 'image'" in refusal(tmp_path, files, features=["width_mm"])
    assert "only the target can be chosen" in refusal(
        tmp_path, files, columns=[{"name": "width_mm", "role": "feature"}]
    )
    file = read(tmp_path, zipped(tmp_path / "images.zip", files))[1]
    for wrong in ({"features": ["image", "width_mm"]}, {"target": "image"}, {"split": {"group": "image"}}):
        with pytest.raises(BadSpec):
            load_dataset(file, DataSpec.model_validate({"dataset": "d", **wrong}))


# Refusals of the archive itself.


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
