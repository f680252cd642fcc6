"""Serves a model with MLflow's model server: `mlflow models serve` of a Python model, one worker."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import mlflow.pyfunc
import numpy as np

from benchmarks.peers.ports import free_port


class Model(mlflow.pyfunc.PythonModel):
    def load_context(self, context: Any) -> None:
        from benchmarks.peers.serving_model import compiled

        self._predict = compiled(context.artifacts["model"])

    def predict(self, context: Any, model_input: Any, params: Any = None) -> Any:
        return self._predict(np.asarray(model_input, np.float32))


def main(model: str, address: Path) -> None:
    packaged, port = str(address.with_suffix(".mlflow")), free_port()
    mlflow.pyfunc.save_model(
        packaged,
        python_model=Model(),
        artifacts={"model": model},
        pip_requirements=[],
        signature=mlflow.models.ModelSignature(
            inputs=mlflow.types.Schema([mlflow.types.TensorSpec(np.dtype(np.float32), (-1, 784))])
        ),
    )
    address.write_text(json.dumps({"url": f"http://127.0.0.1:{port}", "path": "/invocations"}))
    # It starts `uvicorn` by its name, in an interpreter that must find this package.
    here = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(Path.cwd())}
    served = ["models", "serve", "-m", packaged, "--env-manager", "local", "-h", "127.0.0.1", "-p", str(port)]
    os.execve(sys.executable, [sys.executable, "-m", "mlflow", *served, "--workers", "1"], os.environ | here)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
