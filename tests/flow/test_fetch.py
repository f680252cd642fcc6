"""Data at an address become a data set: the scheduler starts the fetch, and a worker reads the file."""

from pathlib import Path

from tests.flow.yard import PROJECT, RunningYard

CSV = "age,price\n" + "".join(f"{age},{age * 2}\n" for age in range(20, 60))


def test_a_file_in_an_open_folder_becomes_a_data_set(flow_installation: RunningYard) -> None:
    path = Path(flow_installation.environment["TRAINYARD_DATA_ROOTS"], "people.csv")
    path.write_text(CSV)
    body = {"project": PROJECT, "slug": "fetched", "url": str(path), "target": "price", "mode": "reference"}
    flow_installation.ada.post("/datasets", body)
    version = flow_installation.until_ready("fetched", project=PROJECT)
    assert (version["rows"], version["file"]) == (40, "people.csv")
    assert (version["fetch"]["state"], version["fetch"]["received"]) == ("done", len(CSV))
