"""Compares the approved signature with the one in the model file."""

from typing import Any

from jobs.spec.signature import Signature, TensorSpec


class SignatureMismatch(Exception):
    """The file has other inputs or outputs than were approved."""


def check_signature(approved: dict[str, Any], stored: Signature) -> Signature:
    """Return the signature to serve: the approved names with the model's types.

    Raises:
        SignatureMismatch: the number or shapes of the tensors differ.
    """
    if not approved:
        return stored
    expected = Signature.model_validate(approved)
    for side in ("inputs", "outputs"):
        approved_specs, stored_specs = getattr(expected, side), getattr(stored, side)
        if [spec.shape for spec in approved_specs] != [spec.shape for spec in stored_specs]:
            raise SignatureMismatch(
                f"approved {side}: {_format(approved_specs)}; found: {_format(stored_specs)}"
            )
    return Signature(
        inputs=tuple(_rename(*pair) for pair in zip(expected.inputs, stored.inputs, strict=True)),
        outputs=tuple(_rename(*pair) for pair in zip(expected.outputs, stored.outputs, strict=True)),
    )


def _rename(approved: TensorSpec, stored: TensorSpec) -> TensorSpec:
    return stored.model_copy(update={"name": approved.name})


def _format(specs: tuple[TensorSpec, ...]) -> str:
    return ", ".join(f"{spec.name}{list(spec.shape)}" for spec in specs)
