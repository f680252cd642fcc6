"""Describes the variables of a model that was built, and the memory that its training needs.

Templates have formulas for their variables. Other models, such as those of own code, are built once by a
runner, without values for the variables.
"""

import math
from typing import NamedTuple

from jobs.spec.base import Frozen
from jobs.spec.plan.layout_rules import device_shape
from jobs.spec.plan.training_memory import DeviceMemory, optimizer_slots
from jobs.spec.sections.fit import FitSpec
from jobs.spec.sections.mesh import MeshSpec
from jobs.spec.templates.layers import Variable

BACKWARD = 2
"""The values of the forward pass that the backward pass needs, and as much again for its own results."""


class BuiltVariable(Frozen):
    """A variable of a model that was built.

    Attributes:
        path: layout rules match it.
        shape: of the whole variable.
        dtype: Keras' name of the type.
        trainable: whether a training changes it by gradients.
        slots: how many optimizer variables have its shape and type; null if the code does not compile the
            model, whose optimizer is then that of the experiment.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    trainable: bool = True
    slots: int | None = None

    def as_variable(self) -> Variable:
        """Return it as the plan lists variables."""
        return Variable(self.path, self.shape, self.trainable, self.dtype)


class ModelState(Frozen):
    """The variables of a model that was built, and the other needs of its training.

    Attributes:
        variables: in the order of Keras, without the states of random generators.
        optimizer_bytes: of optimizer variables that are no slots, such as the number of steps. Each device
            holds them whole.
        row_bytes: values that the backward pass reads, for each row of a batch; null if they are unknown.
    """

    variables: tuple[BuiltVariable, ...] = ()
    optimizer_bytes: int = 0
    row_bytes: int | None = None

    def listed(self) -> list[Variable]:
        """Return the variables as the plan lists them."""
        return [variable.as_variable() for variable in self.variables]

    @property
    def parameters(self) -> int:
        """Count the trainable parameters."""
        return sum(math.prod(variable.shape) for variable in self.variables if variable.trainable)

    def held(self, fit: FitSpec, mesh: MeshSpec | None) -> "HeldState":
        """Return the bytes of the variables that each device holds during training.

        Raises:
            ValueError: the layout does not divide a variable.
        """
        weights = gradients = slots = 0
        for built in self.variables:
            variable = built.as_variable()
            size = variable.bytes_of(device_shape(variable, mesh))
            weights += size
            if built.trainable:
                gradients += size
                slots += size * (optimizer_slots(fit) if built.slots is None else built.slots)
        return HeldState(weights, gradients, slots + self.optimizer_bytes)

    def memory(self, fit: FitSpec, mesh: MeshSpec | None) -> DeviceMemory:
        """Estimate each device's memory during training.

        Raises:
            ValueError: the layout does not divide a variable.
        """
        rows = math.ceil(fit.batch_size / (mesh.batch_shards() if mesh is not None else 1))
        return DeviceMemory(*self.held(fit, mesh), BACKWARD * rows * (self.row_bytes or 0))


class HeldState(NamedTuple):
    """The bytes of the variables on one device. They are exact."""

    weights: int
    gradients: int
    optimizer: int
