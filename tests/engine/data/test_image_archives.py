"""Image archives: the data sets that they become, refusals, and files that are left out."""

import io
import json
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
from tests.images import folders, picture, tarred, zipped
from workers.engine.data.dataset import load_dataset
from workers.engine.data.store import read_arrays
from workers.engine.errors import BadData, BadSpec
from workers.engine.tasks.profile import run
from workers.features.images import decode


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


def test_folders_of_one_class_in_two_writings_are_merged_on_request(tmp_path: Path) -> None:
    files = {f"{name}/{i}.png": picture() for name in ("cat", "Cat ", "dog") for i in range(4)}
    kept = read_files(tmp_path, files)
    assert kept.class_labels == ("Cat", "cat", "dog")
    (offer,) = kept.offers
    assert "'Cat' (4 rows" in offer.finding
    merged = read_files(tmp_path, files, columns=(offer.change,))
    assert (merged.class_labels, merged.class_counts) == (("Cat", "dog"), (8, 4))
