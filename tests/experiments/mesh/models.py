"""Variables of small models, for tests of designs."""

from jobs.spec.plan.mesh.placement import Weight
from jobs.spec.sections.mesh import MeshSpec

MESH = MeshSpec(shape=(2, 4), axis_names=("data", "model"), simulate=8)


def dense(name: str, inputs: int, units: int) -> list[Weight]:
    return [Weight(f"{name}/kernel", (inputs, units)), Weight(f"{name}/bias", (units,))]


def mlp(layers: int = 2, units: int = 64, outputs: int = 10) -> list[Weight]:
    hidden = [weight for i in range(1, layers + 1) for weight in dense(f"dense_{i}", units, units)]
    return [*hidden, *dense("output", units, outputs)]


def norm(name: str, units: int) -> list[Weight]:
    return [Weight(f"{name}/{part}", (units,)) for part in ("gamma", "beta")]


def batch_norm(name: str, units: int) -> list[Weight]:
    moving = [Weight(f"{name}/{part}", (units,), False) for part in ("moving_mean", "moving_variance")]
    return [*norm(name, units), *moving]


def transformer(*, heads: int = 8, width: int = 64, words: int = 1024, positions: int = 32) -> list[Weight]:
    head = width // heads
    into = [
        Weight(f"attention_1/{part}/{kind}", shape, positions=positions)
        for part in ("query", "key", "value")
        for kind, shape in (("kernel", (width, heads, head)), ("bias", (heads, head)))
    ]
    return [
        Weight("text_1/embeddings", (words, width), positions=positions),
        Weight("position/embeddings", (positions, width)),
        *norm("attention_norm_1", width),
        *into,
        Weight("attention_1/attention_output/kernel", (heads, head, width), positions=positions),
        Weight("attention_1/attention_output/bias", (width,)),
        *norm("dense_norm_1", width),
        *(weight._replace(positions=positions) for weight in dense("expand_1", width, 4 * width)),
        *(weight._replace(positions=positions) for weight in dense("contract_1", 4 * width, width)),
        *norm("norm", width),
        *dense("output", width, 10),
    ]


def mesh(*rules: tuple[str, tuple[str | None, ...]], base: MeshSpec = MESH) -> MeshSpec:
    layout = [{"match": match, "axes": axes} for match, axes in rules]
    return MeshSpec.model_validate({**base.model_dump(), "layout": layout})
