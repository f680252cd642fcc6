"""The drawing and the table of a model's layers."""

import itertools
import random

import pytest

from jobs.kinds.register.payload import RegisterPayload
from jobs.kinds.rows import belonging_to
from jobs.models import AuditEvent, Job, ModelVersion
from jobs.queries.runs import model_reports
from tests.architectures import chain, nested, node, residual, source, summary
from tests.factories import make_job, make_model
from tests.markup import one_line, text_of
from tests.people import People, browser_of
from tests.reports import store_report
from webapp.report_figures.architecture import MAX_BOXES, Box, draw_model
from webapp.report_figures.layer_table import PAGE
from webapp.report_figures.layered import Size, lay_out
from webapp.report_figures.repeats import Repeat, find_repeats


def overlapping(boxes: list[Box]) -> list[tuple[str, str]]:
    return [
        (a.title, b.title)
        for a, b in itertools.combinations(boxes, 2)
        if a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height
    ]


def test_equal_blocks_in_succession_are_found() -> None:
    assert find_repeats("xabababy") == [Repeat(0), Repeat(1, 2, 3), Repeat(7)]
    assert find_repeats("aaaaa") == [Repeat(0, 1, 5)]
    assert find_repeats("abc") == [Repeat(0), Repeat(1), Repeat(2)]
    assert find_repeats("") == []


def test_a_short_repeat_does_not_take_the_first_items_of_a_long_one() -> None:
    repeats = find_repeats("aaaa" + "bcaaaa" * 5)
    assert max(repeats, key=lambda repeat: repeat.items).items >= 30
    assert sum(repeat.items for repeat in repeats) == 34


def test_boxes_of_any_graph_do_not_overlap_and_edges_lead_down() -> None:
    dice = random.Random(0)
    for _ in range(20):
        count = dice.randrange(2, 40)
        sizes = [Size(dice.choice([100, 216, 400]), dice.choice([64, 200])) for _ in range(count)]
        edges = [(dice.randrange(at), at) for at in range(1, count) for _ in range(dice.randrange(3))]
        layout = lay_out(sizes, edges)
        boxes = [
            Box(*place, *size, "layer", str(at))
            for at, (place, size) in enumerate(zip(layout.places, sizes, strict=True))
        ]
        assert overlapping(boxes) == []
        assert all(box.x >= 0 and box.x + box.width <= layout.width + 0.2 for box in boxes)
        assert all(layout.places[a].y + sizes[a].height < layout.places[b].y for a, b in edges)


def test_a_small_model_is_drawn_layer_by_layer_with_its_inner_models() -> None:
    drawing = draw_model(summary(nested()), None)
    assert drawing is not None
    assert [box.title for box in drawing.frames] == ["block", "encoder"] or {
        box.title for box in drawing.frames
    } == {"block", "encoder"}
    assert {box.title for box in drawing.boxes} == {"input", "head", "first", "deep"}
    assert overlapping(drawing.boxes) == []


def test_inner_models_are_collapsed_and_expanded_by_their_keys() -> None:
    closed = draw_model(summary(nested()), "")
    assert closed is not None
    assert [(box.key, box.toggle) for box in closed.boxes if box.key] == [("m1", "m1")]
    opened = draw_model(summary(nested()), "m1,nonsense,m99999")
    assert opened is not None
    assert [box.title for box in opened.frames] == ["encoder"]
    assert {box.title for box in opened.boxes} == {"input", "head", "first", "block"}


def test_repeated_blocks_of_a_deep_model_are_one_box_that_expands() -> None:
    graph = residual(70)
    drawing = draw_model(summary(graph), None)
    assert drawing is not None and drawing.repeated
    block = next(box for box in drawing.boxes if box.kind == "block")
    assert (block.period, block.number) in ((3, 70), (3, 69))
    assert block.parameters == block.number * (72 + 16)
    assert len(drawing.boxes) < 6
    opened = draw_model(summary(graph), block.toggle)
    assert opened is not None
    assert len(opened.boxes) >= 200
    assert overlapping(opened.boxes) == []


def test_two_hundred_different_layers_are_all_drawn_with_all_their_connections() -> None:
    graph = [source(), *(node(f"d{i}", i - 1, parameters=i) for i in range(1, 200))]
    drawing = draw_model(summary(graph), None)
    assert drawing is not None
    assert len(drawing.boxes) == 200
    assert len(drawing.edges) == 199
    assert overlapping(drawing.boxes) == []


def test_a_shared_layer_has_an_edge_back_to_it() -> None:
    graph = [source(), node("shared", 0, 2, calls=2), node("between", 1)]
    drawing = draw_model(summary(graph), None)
    assert drawing is not None
    assert len(drawing.edges) == 3


@pytest.mark.parametrize("wide", [False, True])
def test_a_model_of_ten_thousand_layers_has_a_drawing_of_limited_size(wide: bool) -> None:
    inputs = (lambda i: 0) if wide else (lambda i: i - 1)
    graph = [source(), *(node(f"d{i}", inputs(i), parameters=i) for i in range(1, 10_000))]
    drawing = draw_model(summary(graph), None)
    assert drawing is not None
    assert len(drawing.boxes) == MAX_BOXES + 1
    assert drawing.boxes[-1].number == 10_000 - MAX_BOXES
    equal = draw_model(summary(chain(10_000)), "r1,r2")
    assert equal is not None
    assert len(equal.boxes) <= MAX_BOXES + 2


@pytest.fixture
def version(people: People) -> ModelVersion:
    return make_model("digits", project=people.project, by=people.owner).versions.get()


def summarized(version: ModelVersion, body: object, people: People) -> Job:
    """Store the summary that the version's validation wrote."""
    job = make_job(
        kind="register", by=people.owner, project=people.project, state="completed", title="Validate",
        payload=RegisterPayload(version=version.pk).to_json(),
    )  # fmt: skip
    store_report(job, body, role="summary", name="summary.json")  # type: ignore[arg-type]
    return job


def see(people: People, path: str, **query: str) -> str:
    answer = browser_of(people.viewer).get(path, query)
    assert answer.status_code == 200
    return one_line(answer)


def test_the_page_of_a_version_has_the_drawing_and_the_same_figures_as_a_table(
    people: People, version: ModelVersion
) -> None:
    summarized(version, summary(nested()), people)
    page = see(people, "/models/digits/versions/1", tab="model", open="")
    assert "<svg" in page and 'data-toggle="m1"' in page
    for words in ("encoder/block/deep", "Takes outputs of", "rows × 8", "288 B", "float32"):
        assert words in page, words


def test_the_table_is_sorted_by_a_click_and_has_pages(people: People, version: ModelVersion) -> None:
    graph = [source(), *(node(f"d{i:03}", i - 1, parameters=i) for i in range(1, 150))]
    summarized(version, summary(graph), people)
    page = see(people, "/models/digits/versions/1", tab="model", sort="-parameters")
    table = page[page.index('id="layers"') :]
    assert 'aria-sort="descending"' in table
    assert table.index("d149") < table.index("d100")
    assert f"cursor={PAGE}" in table and "d001" not in table
    assert "d001" in see(people, "/models/digits/versions/1", tab="model", sort="-parameters", cursor="100")
    assert see(people, "/models/digits/versions/1", tab="model", sort="nonsense", cursor="-5")


def test_the_page_of_a_model_of_ten_thousand_layers_is_small(people: People, version: ModelVersion) -> None:
    graph = [source(), *(node(f"d{i}", i - 1, parameters=i) for i in range(1, 10_000))]
    summarized(version, summary(graph, text="x" * 3_000_000), people)
    answer = browser_of(people.viewer).get("/models/digits/versions/1", {"tab": "model"})
    assert len(answer.content) < 2_000_000
    assert "9 600 more" in text_of(answer)


def test_a_summary_of_an_earlier_release_offers_to_read_the_layers(
    people: People, version: ModelVersion
) -> None:
    summarized(version, summary(None), people)
    assert "No drawing yet" in see(people, "/models/digits/versions/1", tab="model")
    assert "/describe" not in see(people, "/models/digits/versions/1", tab="model")
    member = browser_of(people.member)
    assert "/describe" in member.get("/models/digits/versions/1", {"tab": "model"}).content.decode()
    assert member.post("/models/digits/versions/1/describe").status_code == 303
    job = Job.objects.filter(belonging_to("version", [version.pk])).latest("pk")
    assert (job.state, job.created_by) == ("queued", people.member)
    assert AuditEvent.objects.filter(action="version.describe").count() == 1
    store_report(job, summary(nested()), role="summary", name="summary.json")
    assert "No drawing yet" not in see(people, "/models/digits/versions/1", tab="model")


def test_the_layers_that_were_read_again_replace_those_of_the_job_that_made_the_version(
    people: People, version: ModelVersion
) -> None:
    training = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    ModelVersion.objects.update(source_job=training)
    store_report(training, summary(None), role="summary", name="summary.json")
    assert "No drawing yet" in see(people, "/models/digits/versions/1", tab="model")
    summarized(version, summary(nested()), people)
    assert "No drawing yet" not in see(people, "/models/digits/versions/1", tab="model")


def test_a_summary_that_is_too_large_is_not_read(
    people: People, version: ModelVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    summarized(version, summary(residual(3)), people)
    monkeypatch.setattr(model_reports, "MAX_BYTES", 100)
    assert "No summary yet" in see(people, "/models/digits/versions/1", tab="model")


def test_the_layers_are_read_by_one_job_at_a_time(people: People, version: ModelVersion) -> None:
    browser = browser_of(people.member)
    address = "/api/v1/models/digits/versions/1/describe"
    answer = browser.post(address)
    assert (answer.status_code, answer.json()["kind"]) == (202, "register")
    assert browser.post(address).status_code == 409
    version.state = ModelVersion.State.INVALID
    version.save(update_fields=["state"])
    Job.objects.update(state="completed")
    assert browser.post(address).status_code == 409


def test_the_graph_is_in_the_rest_answer(people: People, version: ModelVersion) -> None:
    summarized(version, summary(nested()), people)
    address = "/api/v1/models/digits/versions/1/reports"
    item = browser_of(people.viewer).get(address, {"role": "summary"}).json()["items"][0]
    block_node = item["report"]["graph"][4]
    assert (block_node["path"], block_node["parent"], block_node["inputs"]) == ("encoder/block", 1, [3])


def test_a_training_shows_the_layers_of_its_saved_model(people: People) -> None:
    job = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    assert "tab=layers" not in see(people, f"/jobs/{job.pk}")
    store_report(job, summary(residual(2)), role="summary", name="summary.json")
    assert "tab=layers" in see(people, f"/jobs/{job.pk}")
    page = see(people, f"/jobs/{job.pk}", tab="layers")
    assert 'class="ty-edge"' in page and "conv_1" in page
    damaged = make_job(kind="train", by=people.owner, project=people.project, state="completed")
    store_report(damaged, b"{", role="summary", name="summary.json")
    assert "This summary cannot be read" in see(people, f"/jobs/{damaged.pk}", tab="layers")
