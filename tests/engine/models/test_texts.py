"""Text templates: from a table's words to trained, resumed and quantized models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.messages.task import DatasetFile
from jobs.spec.data.encoding import encoded
from jobs.spec.data.profile import Profile
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.exports import EXPORTS
from jobs.spec.plan.variables import variables
from tests.engine.helpers import spec_of
from tests.engine.small_training import train_on
from tests.engine.texts import reviews
from tests.engine.training.test_training import assert_same, final_state
from tests.present import present
from workers.engine.data.dataset import Dataset, load_dataset

SMALL: dict[str, Any] = {
    "text_transformer": {"dim": 8, "blocks": 1, "dropout": 0.2},
    "text_bow": {"hidden": 8, "dropout": 0.2},
}
FIT: dict[str, Any] = {"epochs": 3, "batch_size": 64, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> DatasetFile:
    return reviews(tmp_path_factory.mktemp("reviews"))


def spec_for(template: str, **parts: Any) -> ExperimentSpec:
    return spec_of("reviews", template, **{"args": SMALL.get(template, {}), "fit": FIT, **parts})


def loaded(file: DatasetFile, spec: ExperimentSpec) -> Dataset:
    return load_dataset(file, present(spec.data), spec.texts)


def with_options(spec: ExperimentSpec, **options: dict[str, Any]) -> ExperimentSpec:
    body = spec.to_json()
    return ExperimentSpec.model_validate({**body, "data": {**body["data"], "preprocessing": options}})


def built(spec: ExperimentSpec, data: Dataset) -> Any:
    from workers.engine.models.build import build
    from workers.engine.models.scaling import measure_scaling

    return build(spec, data.profile, measure_scaling(data.x, data.y, data.profile), name="t", seed=0)


def test_the_profile_counts_the_words_of_texts(file: DatasetFile) -> None:
    columns = {column["name"]: column for column in file.profile["columns"]}
    # The number of words that 95 of 100 reviews do not exceed; 20 words in all.
    assert (columns["review"]["length"], columns["review"]["vocabulary"]) == (10, 20)
    assert (columns["title"]["length"], columns["title"]["vocabulary"]) == (3, 10)
    assert columns["price"]["length"] is None


@pytest.mark.parametrize("template", ["mlp", "text_bow", "text_transformer"])
@pytest.mark.parametrize("encode", ["tokens", "words", "characters", "words_and_characters"])
def test_the_plan_lists_the_model_that_is_built_for_every_encoding(
    file: DatasetFile, template: str, encode: str
) -> None:
    spec = with_options(spec_for(template, args={}), review={"encode": encode})
    profile = Profile.model_validate(file.profile)
    described = encoded(spec, profile)
    if template == "text_transformer" and encode != "tokens":
        assert described.tokens[0].column == "title"
    data = loaded(file, spec)
    assert (described.input_shape, described.blocks) == (data.profile.input_shape, data.profile.blocks)
    assert [(v.path, v.shape) for v in variables(spec.model, described)] == [
        (variable.path, tuple(variable.shape)) for variable in built(spec, data).weights
    ]


def test_each_template_for_texts_has_an_encoding_of_its_own(file: DatasetFile) -> None:
    kinds = {
        name: [
            (block.kind, block.positions)
            for block in loaded(file, spec_for(name)).profile.blocks
            if block.column == "review"
        ]
        for name in ("mlp", "text_bow", "text_transformer")
    }
    ngrams = {column["name"]: column["ngrams"] for column in file.profile["columns"]}["review"]
    assert kinds == {
        "mlp": [("plain", ngrams)],
        "text_bow": [("plain", ngrams + 1000)],
        "text_transformer": [("tokens", 10)],
    }


@pytest.mark.parametrize("template", ["text_bow"])
def test_a_model_of_texts_learns_the_words_that_decide(
    tmp_path: Path, file: DatasetFile, template: str
) -> None:
    fit = {"epochs": 12, "batch_size": 32, "learning_rate": 0.01}
    args = {"text_transformer": {"dim": 16, "blocks": 1}, "text_bow": {}}[template]
    trained = train_on(file, tmp_path / "c", template=template, args=args, fit=fit)
    assert max(epoch["val_accuracy"] for epoch in trained.result.history) > 0.9


@pytest.mark.parametrize("template", ["text_bow"])
def test_a_training_interrupted_within_an_epoch_ends_with_the_same_bits(
    tmp_path: Path, file: DatasetFile, monkeypatch: pytest.MonkeyPatch, template: str
) -> None:
    from workers.engine.compiled import training_time
    from workers.engine.report import TaskInterrupted
    from workers.engine.training import checkpoint, training

    def train(folder: str, **options: Any) -> None:
        train_on(file, tmp_path / folder, template=template, args=SMALL[template], fit=FIT, **options)

    train("unbroken")
    monkeypatch.setattr(training, "REQUEST_INTERVAL", 0.0)
    monkeypatch.setattr(training_time, "TARGET_CALL_SECONDS", 0.0)
    with pytest.raises(TaskInterrupted):
        train("broken", requests=[None, "pause"])
    middle = checkpoint.read(checkpoint.list_committed(tmp_path / "broken")[0])
    assert middle.state["batch"] > 0
    train("broken", resume=middle)
    assert_same(final_state(tmp_path, "unbroken"), final_state(tmp_path, "broken"))


@pytest.mark.parametrize("template", ["text_bow"])
def test_a_quantized_model_of_texts_predicts_nearly_the_same(
    tmp_path: Path, file: DatasetFile, template: str
) -> None:
    from workers.engine.exports.source import ExportSource
    from workers.engine.exports.writing import write_model
    from workers.engine.models.files import save_model
    from workers.engine.models.predict import Predictor
    from workers.engine.models.size_limit import check_budget
    from workers.engine.models.untrusted import scan

    spec = spec_for(template)
    data = loaded(file, spec)
    save_model(built(spec, data), tmp_path / "m.keras", data.features)
    check_budget(tmp_path / "m.keras", scan(tmp_path / "m.keras"))
    x = data.x[:40]
    source = ExportSource.of_file(tmp_path / "m.keras", tmp_path, x)
    quantized = write_model(EXPORTS["int8"], source, tmp_path / "q.keras")
    assert np.abs(Predictor(source.model)(x) - Predictor(quantized.model)(x)).max() < 0.03
    assert quantized.layers.quantized


def test_padding_and_other_rows_do_not_affect_a_prediction(file: DatasetFile) -> None:
    spec = spec_for("text_transformer")
    data = loaded(file, spec)
    model, (text, _) = built(spec, data), data.profile.tokens
    table = model.get_layer("text_1").get_weights()[0]
    before = model.predict(data.x[:30], verbose=0)
    table[0] += 1_000.0
    model.get_layer("text_1").set_weights([table])
    np.testing.assert_allclose(model.predict(data.x[:30], verbose=0), before, atol=1e-6)
    # Words at other places are another text.
    moved = data.x[:30].copy()
    moved[:, text.start : text.start + 3] = moved[:, [text.start + 2, text.start, text.start + 1]]
    assert np.abs(model.predict(moved, verbose=0) - before).max() > 1e-6


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("template", ["text_transformer", "mlp"])
def test_rows_without_words_have_predictions_under_every_precision(
    file: DatasetFile, template: str, policy: str
) -> None:
    spec = with_options(
        spec_for(template, precision={"policy": policy}),
        review={"encode": "tokens"},
        title={"encode": "tokens"},
    )
    data = loaded(file, spec)
    assert len(data.profile.tokens) == 2
    assert np.isfinite(built(spec, data).predict(np.zeros_like(data.x[:2]), verbose=0)).all()


def test_the_transformer_trains_in_float16_on_a_cpu(tmp_path: Path, file: DatasetFile) -> None:
    parts: dict[str, Any] = {"args": {"dim": 8, "blocks": 1}, "fit": {"epochs": 1, "batch_size": 128}}
    precision = {"policy": "mixed_float16"}
    trained = train_on(file, tmp_path / "c", template="text_transformer", precision=precision, **parts)
    model = trained.training.loop.program.model
    assert model.get_layer("attention_1").compute_dtype == "float16"
    assert np.isfinite(trained.result.history[0]["val_loss"])


def test_indices_of_many_words_survive_16_bit_precision(file: DatasetFile) -> None:
    spec = spec_for("text_transformer", precision={"policy": "mixed_float16"})
    data = loaded(file, spec)
    (review, _), width = data.profile.tokens, data.x.shape[1]
    large = review.model_copy(update={"size": 5_000})
    blocks = tuple(large if block == review else block for block in data.profile.blocks)
    from workers.engine.models.build import build
    from workers.engine.models.scaling import measure_scaling

    profile = data.profile.model_copy(update={"blocks": blocks})
    model = build(spec, profile, measure_scaling(data.x, data.y, profile), name="t", seed=0)
    rows = np.zeros((2, width), np.float32)
    rows[:, review.start] = 4_098, 4_099
    one, other = model.predict(rows, verbose=0)
    assert not np.array_equal(one, other)
