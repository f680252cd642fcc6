"""Names that the product proposes for experiments, and the models' names that follow from them."""

import re
from collections.abc import Collection, Mapping
from itertools import chain, count
from typing import Any

from jobs.spec.algorithms import ALGORITHMS
from jobs.spec.templates import TEMPLATES

SEARCH_OF_TEMPLATES = "A good model for {dataset}"
_EARLIER = ("{dataset} model", "{dataset} search")
"""Earlier releases proposed these."""
FINE_TUNED = " fine-tuned"
MAX_NAME = 190
"""The longest proposed name. An experiment's name has room for a number behind it."""


def name_experiment(spec: Mapping[str, Any]) -> str:
    """Return a new experiment's name: its data, model and algorithm. name.js proposes it, too.

    >>> data, model = {"dataset": "iris"}, {"kind": "template", "template": "mlp"}
    >>> name_experiment({"data": data, "model": model, "search": {"algorithm": "tpe"}})
    'iris mlp, tpe search'
    """
    model, search = spec["model"], spec.get("search")
    if model.get("kind") == "version":
        name = f"{model['model']}{FINE_TUNED}"
    else:
        name = f"{spec['data'].get('dataset', '')} {_words(_kind(model))}".strip()
    if search is not None:
        name += _suffix(search["algorithm"])
    return name[:MAX_NAME]


def _kind(model: Mapping[str, Any]) -> str:
    """Return own code's entry, or the name of the hypermodel or template."""
    if model.get("kind") == "code":
        return str(model.get("entry", "")).rpartition(":")[2] or "code"
    return str(model.get("template") or model.get("name") or "")


def _suffix(algorithm: str) -> str:
    return f", {_words(algorithm)} search"


def _words(name: str) -> str:
    return name.replace("_", " ")


def search_of_templates(dataset: str) -> str:
    """Name an experiment from "Find me a good model"."""
    return SEARCH_OF_TEMPLATES.format(dataset=dataset)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name that no other experiment has: it gets a number if necessary.

    >>> free_name("iris mlp", {"iris mlp", "iris mlp 2"})
    'iris mlp 3'
    """
    names = chain([name], (f"{name} {number}" for number in count(2)))
    return next(candidate for candidate in names if candidate not in taken)


def name_model(name: str, spec: Mapping[str, Any]) -> str:
    """Return the name for a model: the experiment's, or its data's if the name was proposed.

    Args:
        name: the experiment's name.
        spec: the spec in one of its revisions.
    """
    dataset = str(spec.get("data", {}).get("dataset", ""))
    plain = re.sub(r" \d+$", "", name)
    ends = [_suffix(algorithm) for algorithm in ALGORITHMS]
    start = next((plain.removesuffix(end) for end in ends if plain.endswith(end)), plain)
    if start.endswith(FINE_TUNED):
        return start
    kinds = {*TEMPLATES, _kind(spec.get("model", {}))}
    proposed = {f"{dataset} {_words(kind)}" for kind in kinds}
    proposed |= {pattern.format(dataset=dataset) for pattern in (SEARCH_OF_TEMPLATES, *_EARLIER)}
    return dataset if start in proposed else name
