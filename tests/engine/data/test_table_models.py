"""Table models: pipelines for parts and folds, sizes, and files that are refused."""

import gc
import json
import weakref
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.columns import ColumnOptions
from jobs.spec.data.features import NumberFeature
from jobs.spec.data.file_limits import FileLimits
from jobs.spec.data.profile import Profile
from jobs.spec.plan.variables import variables
from tests.engine.data.test_tables import customers, of_text
from tests.engine.helpers import csv_file, profiled, spec_of
from tests.engine.making import train_member
from tests.present import present
from workers.engine.data.dataset import load_dataset
from workers.engine.errors import BadData, BadModel, BadSpec, DamagedFile
from workers.engine.models.build import build, signature_of
from workers.engine.models.files import load_model, save_model
from workers.engine.models.scaling import measure_scaling
from workers.engine.models.untrusted import scan
from workers.engine.tasks.ensemble import common_features
from workers.engine.tasks.register import features_for
from workers.engine.tasks.samples.known_rows import rows_of_data
from workers.features.files import MEMBER, read_features
from workers.features.pipeline import Pipeline


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    folder = tmp_path_factory.mktemp("table")
    return profiled(folder, source="csv", path=csv_file(folder, customers()))


def test_test_and_validation_rows_do_not_affect_the_pipeline(tmp_path: Path, table: DatasetFile) -> None:
    data = present(spec_of("t").data)
    loaded = load_dataset(table, data)
    lines = customers().splitlines()
    for row in (*loaded.parts.validation, *loaded.parts.test):
        cells = lines[row + 1].split(",")
        cells[1] = "99"
        lines[row + 1] = ",".join(cells)
    other = load_dataset(of_text(tmp_path, "\n".join(lines) + "\n"), data)
    age, changed = (present(dataset.features).columns[0] for dataset in (loaded, other))
    assert isinstance(age, NumberFeature) and isinstance(changed, NumberFeature)
    assert (age.column, age.fill) == (changed.column, changed.fill)
    assert not np.array_equal(loaded.x[:], other.x[:])


def test_a_fold_has_a_pipeline_of_its_own(table: DatasetFile) -> None:
    loaded = load_dataset(table, present(spec_of("t").data))
    assert loaded.fitted_on(loaded.parts.train) is loaded
    fold = loaded.fitted_on(loaded.parts.validation)
    assert fold is loaded.fitted_on(loaded.parts.validation)
    assert fold.features != loaded.features
    assert fold.x.shape == loaded.x.shape


def test_only_folds_within_a_limit_stay_in_memory(
    table: DatasetFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from workers.engine.training.model_cache import ModelCache

    spec = spec_of("t", args={"units": 2})
    loaded, models = load_dataset(table, present(spec.data)), ModelCache()
    monkeypatch.setattr("workers.engine.data.dataset.FOLDS_BYTES", 2 * loaded.x.nbytes)
    parts = loaded.parts
    fold = loaded.fitted_on(parts.validation)
    prepared = models.prepare(spec, fold, parts.validation, name="m", seed=0)
    features, x, freed = fold.features, fold.x[:].copy(), weakref.ref(fold.x)
    assert loaded.fitted_on(parts.test) is not fold
    assert loaded.fitted_on(parts.validation) is fold
    loaded.fitted_on(parts.train_and_validation())
    del fold, prepared
    gc.collect()
    # A cached model has no rows either.
    assert freed() is None
    again = loaded.fitted_on(parts.validation)
    assert again.features == features
    np.testing.assert_array_equal(again.x, x)
    assert models.prepare(spec, again, parts.validation, name="m", seed=0).dataset is again


def test_the_plan_lists_the_variables_of_the_model_that_is_built(table: DatasetFile) -> None:
    spec = spec_of("t", args={"units": 5})
    loaded = load_dataset(table, present(spec.data))
    assert [block.column for block in loaded.profile.embedded] == ["city"]
    scaling = measure_scaling(loaded.x[loaded.parts.train], loaded.y[loaded.parts.train], loaded.profile)
    model = build(spec, loaded.profile, scaling, name="m", seed=0)
    built = [(variable.path, tuple(variable.shape)) for variable in model.weights]
    planned = [
        (variable.path, variable.shape)
        for variable in variables(spec.model, Profile.model_validate(table.profile))
    ]
    assert planned == built


def test_indices_of_many_categories_survive_16_bit_precision(tmp_path: Path) -> None:
    rows = "".join(f"c{i % 3000:05},{i % 2}\n" for i in range(15_000))
    file = of_text(tmp_path, f"city,y\n{rows}")
    spec = spec_of("t", precision={"policy": "mixed_float16"})
    loaded = load_dataset(file, present(spec.data))
    assert loaded.profile.embedded[0].size == 3002
    scaling = measure_scaling(loaded.x, loaded.y, loaded.profile)
    model = build(spec, loaded.profile, scaling, name="m", seed=0)
    model.get_layer("embedding_1").set_weights([np.arange(3002 * 50, dtype=np.float32).reshape(3002, 50) % 7])
    even, odd = model.predict(np.array([[2050.0], [2051.0]], np.float32), verbose=0)
    assert not np.array_equal(even, odd)


def test_the_pipeline_in_a_models_file_makes_its_input_of_raw_rows(
    tmp_path: Path, table: DatasetFile
) -> None:
    spec = spec_of("t")
    loaded = load_dataset(table, present(spec.data))
    member = train_member(tmp_path, "m", spec, table)
    model, features = load_model(Path(member.model), tmp_path), present(read_features(Path(member.model)))
    assert features == loaded.features == features_for(signature_of(model), Path(member.model))
    text = dict(
        zip(customers().splitlines()[0].split(","), customers().splitlines()[1].split(","), strict=False)
    )
    row = {
        "age": float(text["age"]), "city": text["city"], "plan": text["plan"], "bought": text["bought"],
        "income": 20_000, "active": table.profile["preview"][0]["active"],
        "review": table.profile["preview"][0]["review"],
    }  # fmt: skip
    assert Pipeline(features).of_rows([row]).tobytes() == loaded.x[:1].tobytes()
    assert rows_of_data(signature_of(model), table, features)[0].tobytes() == loaded.x[:32].tobytes()


def test_a_file_whose_pipeline_does_not_make_the_models_input_is_rejected(
    tmp_path: Path, table: DatasetFile
) -> None:
    member = train_member(tmp_path, "m", spec_of("t"), table)
    model = load_model(Path(member.model), tmp_path)
    narrow = load_dataset(
        table, present(spec_of("t").data).model_copy(update={"features": ("age",)})
    ).features
    save_model(model, tmp_path / "other.keras", narrow)
    with pytest.raises(BadModel, match=r"its pipeline makes rows of shape \(2,\)"):
        features_for(signature_of(model), tmp_path / "other.keras")
    with zipfile.ZipFile(tmp_path / "bad.keras", "w") as archive:
        archive.writestr(MEMBER, json.dumps({"version": 1, "columns": []}))
    with pytest.raises(BadModel, match=r"its features.json is invalid"):
        features_for(signature_of(model), tmp_path / "bad.keras")


def test_equal_models_with_pipelines_have_equal_bytes_of_the_pipeline(
    tmp_path: Path, table: DatasetFile
) -> None:
    paths = [Path(train_member(tmp_path, name, spec_of("t"), table).model) for name in ("a", "b")]
    members = [zipfile.ZipFile(path).getinfo(MEMBER) for path in paths]
    assert len({(member.CRC, member.date_time) for member in members}) == 1
    assert common_features(paths) == read_features(paths[0])


def test_a_table_that_becomes_too_large_is_refused_before_it_is_encoded(tmp_path: Path) -> None:
    rows = "".join(f"t{i % 40},{i % 2}\n" for i in range(3000))
    with pytest.raises(BadData, match="the table with its columns encoded expands to 504,000 bytes"):
        of_text(tmp_path, f"a,y\n{rows}", limits=FileLimits(expanded_bytes=400_000, table_bytes=400_000))


def test_preprocessing_that_makes_the_input_too_large_is_refused(
    monkeypatch: pytest.MonkeyPatch, table: DatasetFile
) -> None:
    monkeypatch.setattr("jobs.spec.data.encoding.DEFAULT_LIMITS", FileLimits(table_bytes=1))
    options = {"city": ColumnOptions(encode="one_hot")}
    load_dataset(table, present(spec_of("t").data))
    with pytest.raises(BadSpec, match="the encoded columns have"):
        load_dataset(table, present(spec_of("t").data).model_copy(update={"preprocessing": options}))


def test_a_model_that_takes_other_values_is_told_from_damage(tmp_path: Path, table: DatasetFile) -> None:
    features = load_dataset(table, present(spec_of("t").data)).features
    words = customers().replace("45", "old").replace(",3", ",x3")
    other = load_dataset(of_text(tmp_path, words), present(spec_of("t").data))
    with pytest.raises(BadData, match="the model takes other values than these data have: column 'age'"):
        other.rows_for(features, other.parts.test)


def test_a_pipeline_whose_bytes_are_damaged_is_found_by_the_scan(tmp_path: Path, table: DatasetFile) -> None:
    path = Path(train_member(tmp_path, "m", spec_of("t"), table).model)
    scan(path)
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo(MEMBER)
    raw = bytearray(path.read_bytes())
    start = member.header_offset + 30 + len(MEMBER) + 20
    raw[start : start + 40] = b"\xff" * 40
    path.write_bytes(raw)
    with pytest.raises(DamagedFile):
        scan(path)
