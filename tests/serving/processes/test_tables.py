"""A version with a pipeline, served by the whole server: equal rows give equal answers."""

from pathlib import Path

import httpx2
import numpy as np

from jobs.messages.release import Release
from tests.serving.fakes import FakeDashboard
from tests.serving.table_models import (
    CLASSES,
    SALES,
    Form,
    forms_of_examples,
    forms_of_rows,
    predictions_in,
    rows_of,
    served_table,
)
from workers.features.files import add_features
from workers.features.values import Array

PLACES = [0, 7, 13, 29]
"""Rows of the stores 5, 7, 1000 and 2000, whose amounts FP16 and BF16 have too."""


def asked(client: httpx2.Client, form: Form) -> Array:
    head, _, body = form.content.partition(b"\r\n\r\n")
    request, *lines = head.decode().replace("models/m", "models/sales").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines if not line.startswith("Host"))
    answer = client.post(request.split()[1], content=body, headers=headers)
    assert answer.status_code == 200, (form.name, answer.text)
    assert not answer.json().get("nonfinite"), form.name
    return predictions_in(answer.content, form.key, 3)


def test_equal_rows_give_equal_answers_of_a_real_model(
    client: httpx2.Client, dashboard: FakeDashboard, model_files: dict[str, bytes], tmp_path: Path
) -> None:
    columns = {**SALES, "amount": np.round(SALES["amount"])}
    table = served_table(tmp_path, columns).table
    assert table is not None
    path = tmp_path / "sales.keras"
    path.write_bytes(model_files["sales"])
    add_features(path, table.pipeline.features)
    version = dashboard.add(1, path.read_bytes(), class_labels=CLASSES)
    dashboard.publish(Release(model="sales", generation=1, production=1, versions=(version,), issued_at="x"))
    dashboard.serves("sales", 1)
    try:
        rows = rows_of(columns, PLACES)
        first, *others = [*forms_of_rows(rows), *forms_of_examples(rows, "classify")]
        right = asked(client, first)
        assert len(np.unique(right[:, 0])) == len(PLACES)
        for form in others:
            np.testing.assert_allclose(asked(client, form), right, rtol=1e-5, err_msg=form.name)
    finally:
        dashboard.publish(Release(model="sales", generation=2, production=None, versions=(), issued_at="x"))
