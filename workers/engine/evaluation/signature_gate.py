"""Defines the gate that compares the challenger's and the champion's signatures, which clients depend on."""

from jobs.spec.data.columns import ColumnType
from jobs.spec.signature import Signature, TensorSpec
from workers.engine.evaluation.class_names import first_names
from workers.engine.evaluation.gate_outcome import GateOutcome, state_of

ACCEPTING: dict[ColumnType, frozenset[ColumnType]] = {
    # A column of whole numbers becomes one of numbers when a row of it has no value.
    "integer": frozenset({"integer", "number"}),
}
"""The types of columns that accept all values of another type, which is one of them."""


def signature_gate(
    challenger: Signature,
    champion: Signature | None,
    classes: tuple[str, ...] | None = None,
    champion_classes: tuple[str, ...] | None = None,
) -> GateOutcome:
    """Pass if the challenger accepts all the champion's inputs, and answers in the same form.

    Outputs are compared by name, also the only one: Open Inference Protocol clients read it by name. The
    classes within an output have no names there: if they change, an approver must accept the gate.

    Args:
        challenger: its signature.
        champion: that of the champion; None without one.
        classes: the challenger's classes, in the order of its outputs; None if they are unknown.
        champion_classes: the champion's.
    """
    rule = "all inputs of the champion are accepted, and the outputs have the same names and form"
    if champion is None:
        return GateOutcome("signature", "skipped", detail="there is no champion to compare with", rule=rule)
    problems = _input_problems(challenger, champion) + _output_problems(challenger, champion)
    if not problems and classes and champion_classes and classes != champion_classes:
        before, now = first_names(champion_classes, classes), first_names(classes, champion_classes)
        detail = (
            f"in the order of the output, the classes were {before}; they are {now}. Clients that read the "
            "values by position mistake one class for another"
        )
        return GateOutcome("signature", "not_evaluated", detail=detail, rule=rule)
    detail = "; ".join(problems) or "compatible with the champion"
    return GateOutcome("signature", state_of(not problems), detail=detail, rule=rule)


def _input_problems(challenger: Signature, champion: Signature) -> list[str]:
    # The width of the input behind the columns follows from the data, and no client sees it.
    if champion.columns:
        return _window_problems(challenger, champion) + _column_problems(challenger, champion)
    accepted = {tensor.name: tensor for tensor in challenger.inputs}
    sent = {tensor.name: tensor for tensor in champion.inputs}
    problems = [f"input {name!r} is new" for name in accepted if name not in sent]
    for name, tensor in sent.items():
        if name not in accepted:
            problems.append(f"input {name!r} is missing")
        elif not _accepts(accepted[name], tensor):
            problems.append(f"input {name!r} was {_shown(tensor)}, is {_shown(accepted[name])}")
    return problems


def _window_problems(challenger: Signature, champion: Signature) -> list[str]:
    """Return why clients that send the champion's windows, or its single rows, are refused or misled.

    From a longer window than its own, a version reads the last rows.
    """
    old, new = champion.window, challenger.window
    if old is None or new is None:
        was, now = ("one row" if window is None else "a window of rows" for window in (old, new))
        return [] if old is new else [f"an instance was {was}, is {now}"]
    problems = []
    if new.rows > old.rows:
        problems.append(f"a window had {old.rows} rows, has {new.rows}")
    if new.horizon != old.horizon:
        problems.append(f"the predicted row was {old.horizon} rows after the window, is {new.horizon}")
    return problems


def _column_problems(challenger: Signature, champion: Signature) -> list[str]:
    """Return the columns that clients send and the challenger refuses.

    It may have others: a request without them means that their values are missing.
    """
    accepted = {column.name: column.type for column in challenger.columns}
    return [
        f"column {column.name!r} is missing"
        if column.name not in accepted
        else f"column {column.name!r} was {column.type}, is {accepted[column.name]}"
        for column in champion.columns
        if accepted.get(column.name) not in ACCEPTING.get(column.type, {column.type})
    ]


def _output_problems(challenger: Signature, champion: Signature) -> list[str]:
    if len(challenger.outputs) != len(champion.outputs):
        return [f"there were {len(champion.outputs)} outputs, there are {len(challenger.outputs)}"]
    sent = {tensor.name: tensor for tensor in challenger.outputs}
    read = {tensor.name: tensor for tensor in champion.outputs}
    if sent.keys() != read.keys():
        return [f"the outputs were {', '.join(read)}; they are {', '.join(sent)}"]
    return [
        f"output {name!r} was {_shown(old)}, is {_shown(sent[name])}"
        for name, old in read.items()
        if (sent[name].dtype, sent[name].shape) != (old.dtype, old.shape)
    ]


def _accepts(tensor: TensorSpec, sent: TensorSpec) -> bool:
    """Return whether `tensor` accepts all inputs for `sent`: its sizes are equal or variable."""
    return (
        tensor.dtype == sent.dtype
        and len(tensor.shape) == len(sent.shape)
        and all(accepted in (None, size) for accepted, size in zip(tensor.shape, sent.shape, strict=True))
    )


def _shown(tensor: TensorSpec) -> str:
    return f"{tensor.dtype}[{', '.join('any' if size is None else str(size) for size in tensor.shape)}]"
