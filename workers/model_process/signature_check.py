"""Compares the approved signature with the one in the model file."""

from typing import Any

from jobs.spec.signature import Signature, TensorSpec


class SignatureMismatch(Exception):
    """The file has other inputs or outputs than were approved."""


def check_signature(approved: dict[str, Any], signature: Signature) -> Signature:
    """Return the signature to serve: the approved names with the model's types.

    Raises:
        SignatureMismatch: the tensors differ in number or shape.
    """
    if not approved:
        return signature
    expected = Signature.model_validate(approved)
    for side in ("inputs", "outputs"):
        approved_specs, found_specs = getattr(expected, side), getattr(signature, side)
        if [spec.shape for spec in approved_specs] != [spec.shape for spec in found_specs]:
            raise SignatureMismatch(
                f"approved {side}: {_format(approved_specs)}; found: {_format(found_specs)}"
            )
    return Signature(
        inputs=tuple(_renamed(*pair) for pair in zip(expected.inputs, signature.inputs, strict=True)),
        outputs=tuple(_renamed(*pair) for pair in zip(expected.outputs, signature.outputs, strict=True)),
    )


def _renamed(approved: TensorSpec, spec: TensorSpec) -> TensorSpec:
    return spec.model_copy(update={"name": approved.name})


def _format(specs: tuple[TensorSpec, ...]) -> str:
    return ", ".join(f"{spec.name}{list(spec.shape)}" for spec in specs)
