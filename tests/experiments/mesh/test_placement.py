"""The place of each variable on a mesh, and its slices."""

from itertools import product

import pytest

from jobs.spec.plan.mesh.patterns_of_paths import rules_for_paths
from jobs.spec.plan.mesh.placement import Weight, parts_of, place
from jobs.spec.sections.mesh import MeshSpec
from tests.experiments.mesh.models import MESH, mesh

KERNEL = Weight("dense_1/kernel", (64, 32))


def test_the_first_matching_rule_takes_a_variable_and_later_ones_are_listed() -> None:
    design = mesh((".*/kernel", (None, "model")), ("dense_1/.*", ("data", None)))
    placement = place(KERNEL, design)
    assert (placement.rule, placement.rules, placement.axes) == (0, (0, 1), (None, "model"))
    assert placement.shard == (64, 8)
    swapped = mesh(("dense_1/.*", ("data", None)), (".*/kernel", (None, "model")))
    assert place(KERNEL, swapped).shard == (32, 32)


def test_a_variable_without_a_rule_is_whole_on_every_device() -> None:
    placement = place(KERNEL, mesh(("other/kernel", (None, "model"))))
    assert (placement.rules, placement.shard, placement.is_divided) == ((), (64, 32), False)
    assert [part.devices for part in parts_of(placement, MESH)] == [tuple(range(8))]


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ((None, "model"), "dimension 1 of shape [64, 10] is not divisible by axis 'model' of 4 devices"),
        (("model",), "rule has 1 axis, shape [64, 10] has 2 dimensions: give one axis for each"),
        (("data", "data"), "axis 'data' can divide only one dimension"),
    ],
)
def test_a_rule_that_cannot_divide_a_variable_leaves_it_whole_and_says_why(
    axes: tuple[str | None, ...], message: str
) -> None:
    placement = place(Weight("output/kernel", (64, 10)), mesh(("output/kernel", axes)))
    assert (placement.problem, placement.shard) == (message, (64, 10))


def test_a_refused_pattern_matches_nothing() -> None:
    assert place(KERNEL, mesh(("(?=dense).*", (None, "model")))).rules == ()


def test_each_device_has_the_slice_of_its_coordinates() -> None:
    design = mesh((".*/kernel", ("model", "data")))
    parts = parts_of(place(KERNEL, design), design)
    of_device = {device: part.slice for part in parts for device in part.devices}
    for device, (data, model) in enumerate(product(range(2), range(4))):
        assert of_device[device] == ((model * 16, model * 16 + 16), (data * 16, data * 16 + 16))


def test_the_slices_cover_a_variable_exactly_once() -> None:
    base = MeshSpec(shape=(2, 2, 2), axis_names=("a", "b", "c"), batch_axis="a", simulate=8)
    design = mesh(("x", ("c", None, "b")), base=base)
    parts = parts_of(place(Weight("x", (4, 3, 6)), design), design)
    cells = [cell for part in parts for cell in product(*(range(start, end) for start, end in part.slice))]
    assert sorted(cells) == list(product(range(4), range(3), range(6)))
    assert sorted(device for part in parts for device in part.devices) == list(range(8))


def test_a_scalar_has_a_place() -> None:
    placement = place(Weight("scale", ()), MESH)
    assert (placement.shard, placement.bytes) == ((), 4)


def test_rules_have_few_patterns_that_match_only_the_wanted_variables() -> None:
    paths = [f"block_{i}/{name}" for i in range(30) for name in ("query/kernel", "out/kernel", "norm/gamma")]
    wanted: dict[str, tuple[str | None, ...]] = {p: (None, "model") for p in paths if "query" in p}
    wanted |= {path: ("model", None) for path in paths if "out" in path}
    rules = rules_for_paths(wanted, paths)
    assert [(rule.match, rule.axes) for rule in rules] == [
        (".*/query/kernel", (None, "model")),
        (".*/out/kernel", ("model", None)),
    ]


def test_a_pattern_never_takes_a_variable_with_other_axes() -> None:
    paths = ["dense_1/kernel", "dense_2/kernel", "dense_3/kernel", "output/kernel"]
    wanted: dict[str, tuple[str | None, ...]] = {
        paths[0]: (None, "m"), paths[1]: ("m", None), paths[2]: (None, "m"), paths[3]: (None, "m")
    }  # fmt: skip
    assert [rule.match for rule in rules_for_paths(wanted, paths)] == paths


def test_a_path_with_special_characters_is_matched_as_it_is() -> None:
    path = "my.layer+(1)/kernel"
    (rule,) = rules_for_paths({path: (None, "m")}, [path, "myxlayer+(1)/kernel"])
    design = mesh((rule.match, (None, "model")))
    assert place(Weight(path, (4, 4)), design).rules == (0,)
    assert place(Weight("myxlayer+(1)/kernel", (4, 4)), design).rules == ()
