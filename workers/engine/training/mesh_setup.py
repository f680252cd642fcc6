"""Sets the mesh in a spec for a training, and checks that its model follows it."""

from typing import Any

from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.variables import variables
from workers.engine.compiled.placement import MeshPlacement
from workers.engine.data.dataset import Dataset
from workers.engine.models.devices import live_shardings
from workers.engine.models.mesh import current as current_mesh
from workers.engine.models.mesh import use_mesh


def set_mesh(spec: ExperimentSpec, dataset: Dataset | None = None) -> None:
    """Set the spec's mesh, or one device, for the model that is built next.

    Args:
        spec: the experiment.
        dataset: the layout rules are checked against the variables for these data, if a formula lists them.

    Raises:
        BadLayout, BadSpec: see `use_mesh`.
    """
    # Other models are checked once they are built, which `check_live` does.
    has_formula = dataset is not None and spec.model.info.layers is not None
    listed = variables(spec.model, dataset.profile) if dataset is not None and has_formula else None
    use_mesh(spec.mesh, listed, spec.fit.batch_size, allows_unmatched=spec.search is not None)


def check_live(spec: ExperimentSpec, model: Any) -> None:
    """Compare a built model's arrays, and its optimizer's, with the mesh in the spec, before its first step.

    Raises:
        BadLayout: see `live_shardings.check_model`.
    """
    if spec.mesh is not None:
        allows_unmatched = spec.search is not None
        live_shardings.check_model(model, spec.mesh, spec.fit.batch_size, allows_unmatched=allows_unmatched)


def placement() -> MeshPlacement | None:
    """Return where arrays are on the mesh that is in use; None on one device."""
    used = current_mesh()
    return None if used is None else MeshPlacement(used)
