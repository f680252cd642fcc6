"""Compares the examples of public guides with KerasTuner: their spaces, and the scores of equal trials.

    python -m benchmarks.guides --guides FOLDER [--only TEXT …] [--executions 4] [--results FILE]

FOLDER has the guides as Python files: those of KerasTuner in `keras_tuner/`, those of Keras in `keras/` and
`keras_io/`, TensorFlow's tutorial in `tf/keras_tuner.py`. They are not part of this repository. Each is
pasted as a file and as a notebook, read, reduced to its definitions, built, searched for a few trials, and
trained beside KerasTuner with equal rows, values, epochs and batch size, but other seeds. The scores agree if
the difference of their means is within twice its standard error, from the spread of the executions.
"""

import argparse
import ast
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import numpy as np

from benchmarks.guides import ours, rows, theirs
from benchmarks.guides.examples import EXAMPLES, Example
from benchmarks.guides.pasting import as_notebook, pasted
from benchmarks.guides.table import table
from jobs.spec.formats import keras_tuner as keras_tuner_format


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.guides", description=__doc__)
    parser.add_argument("--guides", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[""])
    parser.add_argument("--executions", type=int, default=4)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--results", type=Path, default=Path("guides.jsonl"))
    parser.add_argument("--spaces", action="store_true", help="compare no scores")
    parser.add_argument("--table", action="store_true", help="print the results of the file as a table")
    options = parser.parse_args()
    if options.table:
        print(table(options.results))
        return
    done = _done(options.results)
    for example in EXAMPLES:
        if example.label in done or not any(text in example.label for text in options.only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            result = {"example": example.label, **compared(example, options, Path(folder))}
        if not options.spaces:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result, default=str) + "\n")
        print(json.dumps(result, indent=1, default=str), flush=True)


def _done(file: Path) -> set[str]:
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {json.loads(line)["example"] for line in lines}


def compared(example: Example, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return the findings about an example; the error that ended them is one of them."""
    result: dict[str, Any] = {"changed": "data" if not example.more else "data, lines added"}
    try:
        _compare(example, options, folder, result)
    except Exception as error:  # noqa: BLE001 each example is compared
        result["error"] = f"{type(error).__name__}: {error}"
        result["trace"] = getattr(error, "trace", "") or traceback.format_exc()[-1500:]
    return result


def _compare(example: Example, options: argparse.Namespace, folder: Path, result: dict[str, Any]) -> None:
    text = pasted(
        options.guides / example.guide, example.name, example.nth, whole=example.whole, more=example.more
    )
    entry = example.entry or example.name
    first, only, definitions = ours.readings(text, "guide.py", folder / "file")
    _, _, of_notebook = ours.readings(as_notebook(text), "guide.ipynb", folder / "notebook")
    result["entries"] = [f"{each.kind} {each.name}" for each in only.found.entries]
    result["notices"] = [each.message for each in (*first.found.notices, *only.found.notices)]
    result["runs"] = len(first.found.runs)
    searches = [each for each in getattr(first.found, "searches", []) if each.entry == entry]
    result["proposed"] = [each.model_dump(exclude_defaults=True) for each in searches]
    result["notebook_equal"] = _code(of_notebook) == _code(definitions)
    file = ours.loaded(folder / "data", rows.write(example.data, folder), example.task)
    result["rows"] = ours.shape_of(file)
    trials = ours.Trials(folder / "ours", definitions, entry, file)
    result["notes"] = list(trials.built.notes)
    result["builds"] = trials.built.builds
    result["space"] = _space_difference(trials, definitions, entry)
    objective = {"metric": example.metric, "direction": example.direction}
    result["problems"] = list(trials.problems(objective, example.epochs))
    if options.spaces:
        return
    if trials.built.space:
        result["search"] = trials.searched(objective, options.trials)
    result["scores"] = []
    for values in _configurations(example, trials, definitions, entry):
        result["scores"].append(_scores(example, options, folder, trials, values))
    result["messages"] = trials.report.messages


def _code(text: str) -> str:
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not _is_text(node)]
    # The functions name lines of the file.
    return ast.unparse(tree).split("def build_model(hp)")[0]


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _space_difference(trials: ours.Trials, text: str, entry: str) -> dict[str, Any]:
    """Return the hyperparameters of both sides, and each difference."""
    found = theirs.described(keras_tuner_format.write(trials.built.space)["space"])
    known = theirs.described([*theirs.space(text, entry).values()])
    differences = [f"only ours: {name}" for name in found if name not in known]
    differences += [f"only KerasTuner: {name}" for name in known if name not in found]
    for name in [each for each in known if each in found]:
        differences += [
            f"{name}.{key}: {found[name][key]!r}, not {value!r}"
            for key, value in known[name].items()
            if found[name].get(key) != value
        ]
    return {"names": list(known), "differences": differences}


def _configurations(example: Example, trials: ours.Trials, text: str, entry: str) -> list[dict[str, Any]]:
    if not trials.built.space or not example.random:
        return [{}]
    return [theirs.drawn(theirs.space(text, entry), 3)]


def _scores(
    example: Example, options: argparse.Namespace, folder: Path, trials: ours.Trials, values: dict[str, Any]
) -> dict[str, Any]:
    built = trials.built
    objective = {"metric": example.metric, "direction": example.direction}
    seeds = range(options.executions)
    own = [score for score in trials.scores(values, objective, example.epochs, seeds) if score is not None]
    parts = theirs.parts_of(
        trials.file, trials.spec(1), one_hot=built.output_shape[0] or 0 if built.one_hot else 0,
        as_numbers=built.task in ("regression", "binary"),
    )  # fmt: skip
    batch_size = None if built.own_fit and "batch_size" in built.replaced else ours.BATCH_SIZE
    text = Path(trials.code.folder, "model.py").read_text(encoding="utf-8")
    entry = str(trials.model["entry"])
    result: dict[str, Any] = {"values": values, "ours": own}
    try:
        other = theirs.scores(
            folder / "theirs", text, entry, values, parts, objective, example.epochs, seeds, batch_size
        )
    except Exception as error:  # noqa: BLE001 it is one of the findings
        return {**result, "error": f"{type(error).__name__}: {error}"[-600:]}
    return {**result, "theirs": other, **_agreement(own, other)}


def _agreement(own: list[float], other: list[float]) -> dict[str, Any]:
    if not own or not other:
        return {"within": not own and not other}
    difference = abs(float(np.mean(own) - np.mean(other)))
    error = float(np.sqrt(sum(np.var(part, ddof=1) / len(part) for part in (own, other))))
    return {
        "means": [float(np.mean(own)), float(np.mean(other))],
        "deviations": [float(np.std(own, ddof=1)), float(np.std(other, ddof=1))],
        "standard_errors": difference / error if error else 0.0,
        "within": difference <= 2 * error + 1e-6,
    }


if __name__ == "__main__":
    sys.exit(main())
