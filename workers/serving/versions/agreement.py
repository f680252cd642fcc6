"""Compares the signature that people approved with the one that the file turned out to have."""

from typing import Any

from jobs.contracts.signature import Signature, TensorSpec


class SignatureDiffers(Exception):
    """The file takes or gives other tensors than were approved."""


def agreed(approved: dict[str, Any], found: Signature) -> Signature:
    """Return the signature to serve: the approved names over the tensors that were found.

    Raises:
        SignatureDiffers: number or shapes of the tensors are not those that were approved.
    """
    if not approved:
        return found
    expected = Signature.model_validate(approved)
    for side in ("inputs", "outputs"):
        ours, theirs = getattr(expected, side), getattr(found, side)
        if [spec.shape for spec in ours] != [spec.shape for spec in theirs]:
            raise SignatureDiffers(f"approved {side}: {_shown(ours)}; found: {_shown(theirs)}")
    return Signature(
        inputs=tuple(_renamed(*pair) for pair in zip(expected.inputs, found.inputs, strict=True)),
        outputs=tuple(_renamed(*pair) for pair in zip(expected.outputs, found.outputs, strict=True)),
    )


def _renamed(approved: TensorSpec, found: TensorSpec) -> TensorSpec:
    return found.model_copy(update={"name": approved.name})


def _shown(specs: tuple[TensorSpec, ...]) -> str:
    return ", ".join(f"{spec.name}{list(spec.shape)}" for spec in specs)
