"""The mesh designer: each field and button changes the design, and an address carries it."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import Client

from jobs.models import Experiment
from tests.experiments.mesh.conftest import TWO_BY_FOUR, fields_of
from tests.factories import make_worker
from tests.world import World

Open = Callable[..., Any]
Press = Callable[..., Any]


def design(page: Any) -> Any:
    return page.context["design"]


def text(page: Any) -> str:
    return " ".join(page.content.decode().split())


def problems(page: Any) -> dict[str, str]:
    return {problem.pointer: problem.message for problem in page.context["problems"]}


def test_an_experiment_without_a_mesh_begins_with_two_devices(opened: Open) -> None:
    page = opened(None)
    assert page.status_code == 200
    assert design(page).mesh.shape == (2,)
    assert "Each batch of 64 rows is cut into 2 parts of 32 rows along “data”, for one device each." in text(
        page
    )


def test_the_address_carries_the_design_and_opens_it_again(
    browser: Client, opened: Open, press: Press
) -> None:
    page = press(opened(), do="down:0", match=["dense_1/.*", ".*/kernel"], axes=["–, model", "model, –"])
    (address, status) = page.redirect_chain[-1]
    assert status == 303
    again = browser.get(address)
    assert again.context["entries"] == page.context["entries"]
    assert [rule.match for rule in again.context["entries"].rules] == [".*/kernel", "dense_1/.*"]
    assert parse_qs(urlsplit(address).query).keys() == {"experiment", "mesh", "variable"} - (
        set() if "variable" in address else {"variable"}
    )


@pytest.mark.parametrize(("batch", "name"), [("0", "model"), ("", "data")])
def test_a_second_axis_is_for_the_model_if_the_first_divides_the_batch(
    opened: Open, press: Press, batch: str, name: str
) -> None:
    page = press(opened(None), do="add-axis", axis_name=["batch"], batch_axis=batch)
    assert [axis.name for axis in page.context["entries"].axes] == ["batch", name]


def test_the_largest_variable_is_drawn_until_another_one_is_picked(opened: Open, press: Press) -> None:
    page = opened()
    assert design(page).chosen.weight.path == "dense_1/kernel"
    page = press(page, pick="dense_2/bias")
    assert design(page).chosen.weight.path == "dense_2/bias"
    assert "each of the 8 devices has all of it" in text(page)


def test_each_device_is_drawn_with_its_slice_as_text(opened: Open) -> None:
    grid = design(opened()).grid
    assert [cell.lines for cell in grid.cells] == [("0:8",), ("8:16",), ("16:24",), ("24:32",)] * 2
    hues = [cell.look.hue for cell in grid.cells]
    assert hues == [0, 1, 2, 3] * 2
    assert "is cut into 4 slices of [64, 8], each on 2 devices" in grid.text


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("axis_size", ["4", "2"], (4, 2)),
        ("axis_size", ["1", "1"], (1, 1)),
    ],
)
def test_a_size_changes_the_mesh(
    opened: Open, press: Press, field: str, value: list[str], expected: tuple[int, int]
) -> None:
    assert design(press(opened(), **{field: value})).mesh.shape == expected


def test_a_name_changes_the_axis(opened: Open, press: Press) -> None:
    page = press(opened(), axis_name=["data", "m"], axes=["–, m"])
    assert design(page).mesh.axis_names == ("data", "m")
    wrong = press(opened(), axis_name=["data", "m"])
    assert wrong.status_code == 422
    assert "has axes ['model'], not in ['data', 'm']" in str(problems(wrong))
    assert 'value="m"' in text(wrong), "the entries are kept"


def test_the_batch_axis_changes_how_a_batch_is_divided(opened: Open, press: Press) -> None:
    assert "2 parts of 32 rows" in design(opened()).batch.text
    assert "4 parts of 16 rows along “model”" in design(press(opened(), batch_axis="1")).batch.text
    none = press(opened(), batch_axis="")
    assert "no axis divides it" in design(none).batch.text


def test_the_batch_can_be_another_one_than_in_the_spec(opened: Open, press: Press) -> None:
    before = design(opened())
    page = press(opened(), batch="640")
    assert "Each batch of 640 rows is cut into 2 parts of 320 rows" in design(page).batch.text
    assert design(page).after.activations == 10 * before.after.activations
    odd = press(opened(), batch="65")
    assert "cannot be cut into 2 equal parts along “data”: choose a multiple of 2, such as 66" in text(odd)
    assert "not &#x27;many&#x27;" in text(press(opened(), batch="many"))


def test_the_kind_and_the_simulation_of_devices_are_read(opened: Open, press: Press) -> None:
    for entered in ({"simulated": None}, {}):
        page = press(opened(), devices="gpu", **entered)
        assert (design(page).mesh.kind, design(page).mesh.simulate) == ("gpu", None)
    named = press(opened(), devices="gpu:0, gpu:1", simulated=None, axis_size=["1", "2"])
    assert design(named).mesh.devices == ("gpu:0", "gpu:1")


def test_the_memory_of_a_device_comes_from_the_pool_or_from_the_field(opened: Open, press: Press) -> None:
    unknown = opened()
    assert design(unknown).capacity.bytes is None
    assert "No worker of pool default reports the memory of a CPU" in text(unknown)
    make_worker(devices=[{"name": "gpu:0", "kind": "NVIDIA L4", "memory_bytes": 24 * 2**30}])
    gpu = press(opened(), devices="gpu", simulated=None)
    assert design(gpu).capacity.bytes == 24 * 2**30
    assert "Fits:" in text(gpu)
    assert "gpu:0, NVIDIA L4, of worker" in text(gpu)
    tiny = press(opened(), memory="0.00001")
    assert "Does not fit" in text(tiny)


def test_simulated_devices_share_the_memory_of_their_machine(opened: Open) -> None:
    make_worker()
    assert design(opened()).capacity.bytes == 1_000_000_000


@pytest.mark.parametrize(("field", "value"), [("teraflops", "1000"), ("link", "1000")])
def test_the_assumed_hardware_changes_the_expectation(
    opened: Open, press: Press, field: str, value: str
) -> None:
    assert design(press(opened(), **{field: value})).step.total < design(opened()).step.total


def test_rules_are_added_moved_and_removed(opened: Open, press: Press) -> None:
    page = press(opened(), do="add-rule", variable="dense_2/bias")
    assert page.context["entries"].rules[1] == ("dense_2/bias", "–")
    page = press(page, do="up:1")
    assert page.context["entries"].rules[0] == ("dense_2/bias", "–")
    page = press(page, do="remove:0")
    assert [rule.match for rule in page.context["entries"].rules] == ["dense_[0-9]+/kernel"]


def test_axes_are_added_and_removed(opened: Open, press: Press) -> None:
    page = press(opened(), do="add-axis")
    assert design(page).mesh.shape == (2, 4, 2)
    page = press(page, do="remove-axis:0")
    assert (design(page).mesh.shape, design(page).mesh.batch_axis) == ((4, 2), None)


def test_rules_show_what_they_take(opened: Open, press: Press) -> None:
    page = press(
        opened(), match=[".*/kernel", "dense_1/kernel", "none/kernel"], axes=["–, –", "–, model", "–, –"]
    )
    assert [tuple(use) for use in design(page).uses] == [(3, 0, 0), (0, 1, 0), (0, 0, 0)]
    assert "takes nothing: earlier rules take all that it matches" in text(page)
    assert "matches no variable" in text(page)


@pytest.mark.parametrize(
    ("show", "paths"),
    [
        (
            "all",
            {
                "dense_1/kernel",
                "dense_1/bias",
                "dense_2/kernel",
                "dense_2/bias",
                "output/kernel",
                "output/bias",
            },
        ),
        ("unmatched", {"dense_1/bias", "dense_2/bias", "output/bias"}),
        ("twice", {"dense_1/kernel"}),
        ("indivisible", {"output/kernel"}),
    ],
)
def test_filters_list_the_variables_that_need_a_look(
    opened: Open, press: Press, show: str, paths: set[str]
) -> None:
    page = press(opened(), match=[".*/kernel", "dense_1/kernel"], axes=["–, model", "–, –"], show=show)
    listed = design(page).variables
    assert {row.weight.path for row in listed.rows} == paths
    assert {each.name: each.number for each in listed.filters}[show] == len(paths)


def test_a_part_of_a_path_finds_variables(opened: Open, press: Press) -> None:
    assert [row.weight.path for row in design(press(opened(), q="OUTPUT/b")).variables.rows] == [
        "output/bias"
    ]
    assert "No variable matches" in text(press(opened(), q="nothing-like-it"))


def test_hundreds_of_variables_have_pages(browser: Client) -> None:
    query: dict[str, str | int] = {"template": "mlp", "project": "yard", "dataset": "digits"}
    query["args"] = '{"layers": 60}'
    page = browser.get("/mesh", query)
    assert (len(design(page).variables.rows), design(page).variables.pages) == (50, 3)
    last = browser.get("/mesh", {**query, "page": 3})
    assert len(design(last).variables.rows) == 22
    assert "122 variables, page 3 of 3" in text(last)


@pytest.mark.parametrize("plan", ["data_parallel", "last_dimension", "alternating", "fully_sharded"])
def test_a_plan_replaces_the_design_and_shows_before_and_after(opened: Open, press: Press, plan: str) -> None:
    start = opened()
    page = press(start, do=f"plan:{plan}")
    assert page.context["plan"] == plan
    assert design(page).before == design(start).after
    assert not any(placement.problem for placement in design(page).variables.rows)
    assert "Back to the design before" in text(page)
    back = press(page, do="back")
    assert back.context["entries"] == start.context["entries"]


def test_fully_sharded_saves_memory(opened: Open, press: Press) -> None:
    page = press(opened({"shape": [8], "axis_names": ["data"], "simulate": 8}), do="plan:fully_sharded")
    assert design(page).after.weights < design(page).before.weights / 4
    assert "less than before" in text(page)


def test_another_number_of_devices_is_one_click_away(opened: Open, press: Press) -> None:
    page = press(opened(), do="resize:4")
    assert (design(page).mesh.shape, design(page).mesh.simulate) == ((1, 4), 4)


def test_template_arguments_change_the_model(browser: Client, press: Press) -> None:
    page = browser.get("/mesh", {"template": "mlp", "project": "yard", "dataset": "digits"})
    wide = press(page, **{"arg-units": "512", "arg-layers": "3"})
    shapes = {row.weight.path: row.weight.shape for row in design(wide).variables.rows}
    assert shapes["dense_3/kernel"] == (512, 512)
    wrong = press(page, **{"arg-units": "0"})
    assert "greater than or equal to 1" in text(wrong)


def test_an_eight_by_eight_mesh_is_drawn_whole_and_a_larger_one_in_part(opened: Open, press: Press) -> None:
    large = {**TWO_BY_FOUR, "shape": [8, 8], "simulate": 64}
    drawn = design(opened(large)).grid
    assert (drawn.drawn, drawn.total) == (64, 64)
    larger = {**TWO_BY_FOUR, "devices": "gpu", "shape": [128, 8]}
    del larger["simulate"]
    page = opened(larger)
    assert (design(page).grid.drawn, design(page).grid.total) == (64, 1024)
    assert "The first 64 of" in text(page)


def test_a_design_that_is_too_long_for_a_link_stays_in_the_form(opened: Open, browser: Client) -> None:
    page = opened()
    rules = [f"layer_{number}_deep/kernel" for number in range(120)]
    shown = browser.post("/mesh", fields_of(page, match=rules, axes=["–, model"] * 120))
    assert shown.status_code == 200
    assert len(shown.context["entries"].rules) == 120
    assert "too long for a link" in text(shown)


@pytest.mark.parametrize(
    ("rules", "message"), [(["a"] * 201, "at most 200 rules"), (["(abc){900}"] * 9, "too large")]
)
def test_rules_that_would_take_long_to_match_are_refused(
    opened: Open, browser: Client, rules: list[str], message: str
) -> None:
    page = browser.post("/mesh", fields_of(opened(), match=rules, axes=["–"] * len(rules)))
    assert message in problems(page)["/mesh/layout"]
    assert page.status_code == 422


def test_a_part_request_returns_the_form_and_its_address(opened: Open, browser: Client) -> None:
    response = browser.post(
        "/mesh", fields_of(opened(), do="plan:data_parallel"), headers={"HX-Request": "true"}
    )
    assert response.status_code == 200
    assert "<html" not in response.content.decode()
    assert "plan=data_parallel" in response.headers["HX-Push-Url"]


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({"experiment": "many"}, 422, "give the number of the experiment"),
        ({"experiment": "9" * 30}, 422, "give the number of the experiment"),
        ({"experiment": "99999"}, 404, "no experiment 99999"),
        ({"job": "99999"}, 404, "no job 99999"),
        ({"version": "nothing/1"}, 404, "no version"),
        ({"template": "nothing"}, 422, "there is no template"),
        ({"template": "mlp", "args": "[1]"}, 422, "give an object"),
        ({"template": "mlp", "args": "{"}, 422, "not JSON"),
        ({"template": "mlp", "project": "elsewhere"}, 404, "no project"),
        ({"code": "0" * 64}, 404, "no code"),
        ({"template": "mlp", "mesh": "{"}, 422, "give a mesh as JSON"),
        ({"template": "mlp", "mesh": '{"shape": ["x"], "axis_names": ["a"]}'}, 422, "/mesh/shape/0"),
        (
            {"template": "mlp", "mesh": '{"shape": [2], "axis_names": ["data"], "layout": 3}'},
            422,
            "/mesh/layout",
        ),
        ({"template": "mlp", "before": "[]"}, 422, "dictionary"),
    ],
)
def test_a_wrong_address_is_refused_with_its_field(
    browser: Client, query: dict[str, str], status: int, message: str
) -> None:
    page = browser.get("/mesh", query)
    assert message in text(page)
    assert page.status_code == status


def test_entries_are_shown_as_text(opened: Open, press: Press) -> None:
    evil = "<script>alert(1)</script>"
    page = press(opened(), match=[evil], axes=["–, model"], q=evil, axis_name=[evil, "model"], batch_axis="1")
    assert evil not in page.content.decode()
    assert "&lt;script&gt;" in page.content.decode()


def test_a_pattern_without_linear_time_is_refused_at_its_rule(opened: Open, press: Press) -> None:
    page = press(opened(), match=["(a+)+(?=b)"], axes=["–, model"])
    assert "no lookahead" in problems(page)["/mesh/layout/0/match"]
    assert page.status_code == 422


def test_a_draft_that_is_not_valid_shows_its_problems(world: World, browser: Client) -> None:
    draft = {"version": 1, "model": {"kind": "template", "template": "mlp"}, "fit": {"epochs": "many"}}
    experiment = Experiment.objects.create(
        project=world.project, name="draft", draft=draft, created_by=world.owner
    )
    page = browser.get("/mesh", {"experiment": experiment.pk})
    assert page.status_code == 200
    assert "because its experiment is not valid" in text(page)
    assert "/spec/fit/epochs" in text(page)


@pytest.mark.parametrize("draft", [[], "text", 3, {"mesh": 3}, {"mesh": {"shape": "x"}}])
def test_a_draft_of_any_json_opens(world: World, browser: Client, draft: Any) -> None:
    experiment = Experiment.objects.create(
        project=world.project, name="draft", draft=draft, created_by=world.owner
    )
    assert browser.get("/mesh", {"experiment": experiment.pk}).status_code == 200


def test_without_a_model_the_page_lists_experiments_and_templates(
    browser: Client, experiment: Experiment
) -> None:
    page = text(browser.get("/mesh"))
    assert f"/mesh?experiment={experiment.pk}" in page
    assert "/mesh?project=yard&amp;template=mlp" in page


def test_the_advice_names_batch_and_rate(opened: Open) -> None:
    page = opened({"shape": [8], "axis_names": ["data"], "simulate": 8})
    assert design(page).scaling.batch == 512
    assert "square root rule" in text(page)
    assert (
        opened({"shape": [8], "axis_names": ["m"], "batch_axis": None, "simulate": 8})
        .context["design"]
        .scaling
        is None
    )


def test_the_json_to_copy_is_the_mesh_of_a_spec(opened: Open) -> None:
    copied = json.loads(opened().context["mesh_text"])
    assert copied == TWO_BY_FOUR


def test_the_whole_spec_with_the_design_is_there_for_an_estimate(opened: Open, press: Press) -> None:
    page = press(opened(), batch="256")
    spec = json.loads(page.context["spec_text"])
    assert spec["mesh"] == TWO_BY_FOUR
    assert spec["fit"]["batch_size"] == 256
    assert spec["model"]["args"]["units"] == 32
    assert page.context["project"].slug == "yard"
    assert '<input type="hidden" name="spec" form="no-form"' in text(page)
