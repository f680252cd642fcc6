"""Optimizers and learning rate schedules: Keras gets the spec's settings."""

import inspect
import math
from collections.abc import Sequence
from typing import Any

import pytest

from jobs.spec.sections.fit import FitSpec
from jobs.spec.sections.optimizers import ARGUMENTS, Optimizer

EPOCHS, STEPS, RATE = 10, 4, 0.5


def rates_at(steps: Sequence[float], **schedule: Any) -> list[float]:
    import jax
    import numpy as np

    from workers.engine.models.optimizer import learning_rate

    fit = FitSpec.model_validate({"epochs": EPOCHS, "learning_rate": RATE, "schedule": schedule})
    return jax.jit(jax.vmap(learning_rate(fit, STEPS)))(np.asarray(steps)).tolist()


def cosine(t: float, alpha: float = 0.0) -> float:
    return alpha + (1 - alpha) * (1 + math.cos(math.pi * min(t, 1.0))) / 2


CURVES = [
    ({"kind": "cosine"}, lambda epoch: cosine(epoch / 10)),
    ({"kind": "cosine", "epochs": 5, "alpha": 0.2}, lambda epoch: cosine(epoch / 5, 0.2)),
    (
        {"kind": "warmup_cosine", "warmup_epochs": 2.5},
        lambda epoch: epoch / 2.5 if epoch < 2.5 else cosine((epoch - 2.5) / 7.5),
    ),
    (
        {"kind": "cosine_restarts", "first_epochs": 2, "t_mul": 2, "m_mul": 0.5},
        lambda epoch: cosine(epoch / 2) if epoch < 2 else 0.5 * cosine((epoch - 2) / 4),
    ),
    ({"kind": "exponential", "factor": 0.5, "every": 2}, lambda epoch: 0.5 ** (epoch / 2)),
    ({"kind": "step", "factor": 0.1, "every": 3}, lambda epoch: 0.1 ** (epoch // 3)),
    ({"kind": "polynomial", "power": 2, "alpha": 0.1}, lambda epoch: 0.1 + 0.9 * (1 - epoch / 10) ** 2),
    ({"kind": "piecewise", "at": [2, 4], "factor": 0.5}, lambda epoch: 0.5 ** ((epoch >= 2) + (epoch >= 4))),
]


@pytest.mark.parametrize(("schedule", "expected"), CURVES, ids=lambda c: c["kind"] if type(c) is dict else "")
def test_a_schedule_follows_its_formula_over_the_steps(schedule: dict[str, Any], expected: Any) -> None:
    steps = range(6 * STEPS)
    rates = [RATE * expected(step / STEPS) for step in steps]
    assert rates_at(steps, **schedule) == pytest.approx(rates, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("schedule", [None, {"kind": "constant"}, {"kind": "reduce_on_plateau"}])
def test_without_a_schedule_over_steps_the_rate_is_a_variable(schedule: dict[str, Any] | None) -> None:
    from workers.engine.models.optimizer import make_optimizer

    optimizer = make_optimizer(FitSpec.model_validate({"learning_rate": RATE, "schedule": schedule}), STEPS)
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_spec_knows_the_arguments_of_each_optimizer_and_their_defaults(name: Optimizer) -> None:
    import keras

    from workers.engine.models.optimizer import OPTIMIZERS

    taken = inspect.signature(getattr(keras.optimizers, OPTIMIZERS[name]).__init__).parameters
    elsewhere = {"self", "kwargs", "name", "learning_rate", "loss_scale_factor", "use_ema", "ema_momentum"}
    elsewhere |= {"ema_overwrite_frequency", "clipnorm", "clipvalue", "global_clipnorm"}
    declared = {field: about.default for field, about in ARGUMENTS[name].model_fields.items()}
    assert declared == {field: about.default for field, about in taken.items() if field not in elsewhere}


def test_an_optimizer_gets_its_arguments_clipping_and_averages() -> None:
    from workers.engine.models.optimizer import make_optimizer

    optimizer = make_optimizer(
        FitSpec.model_validate(
            {
                "optimizer": "sgd",
                "optimizer_args": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
                "global_clipnorm": 2.0,
                "ema": {"momentum": 0.95, "overwrite_frequency": 7},
            }
        ),
        STEPS,
    ).get_config()
    arguments = {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "global_clipnorm": 2.0}
    arguments |= {"use_ema": True, "ema_momentum": 0.95, "ema_overwrite_frequency": 7}
    assert {name: optimizer[name] for name in arguments} == arguments
