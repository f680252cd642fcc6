"""Writes the rows of a search for the peers: `python -m benchmarks.peers.rows NAME OUT.npz`."""

import sys
from pathlib import Path

import numpy as np

from jobs.spec.sections.data import DataSpec
from tests.engine.making import dataset_file
from workers.engine.data.dataset import load_dataset

name, out = sys.argv[1:]
spec = {"dataset": name, "split": {"validation": 0.2, "test": 0.2, "seed": 0}}
data = load_dataset(dataset_file(Path(out).parent, name), DataSpec.model_validate(spec))
train, validation = data.parts.train, data.parts.validation
x = data.x.astype(np.float32)
np.savez(out, x=x[train], y=data.y[train], x_val=x[validation], y_val=data.y[validation])
