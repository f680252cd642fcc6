"""Offers of a wide table, and columns with several of them."""

from pathlib import Path

from jobs.spec.data.profile import Profile
from tests.engine.helpers import csv_file, profiled

ROWS = 40


def profile_of(folder: Path, header: str, rows: list[str]) -> Profile:
    text = "\n".join([header, *rows, ""])
    return Profile.model_validate(profiled(folder, source="csv", path=csv_file(folder, text)).profile)


def test_a_wide_table_keeps_the_offers_on_target_and_roles_and_counts_the_others(tmp_path: Path) -> None:
    names = [f"c{column}" for column in range(200)]
    rows = [
        ",".join([str(row), *["unknown" if row == 3 else f"{row % 7}.5"] * 200, "yes" if row % 2 else "Yes"])
        for row in range(ROWS)
    ]
    profile = profile_of(tmp_path, f"row_id,{','.join(names)},y", rows)
    changes = [offer.change for offer in profile.offers]
    assert (changes[0].name, changes[0].merge_labels) == ("y", True)
    assert (changes[1].name, changes[1].role) == ("row_id", "feature")
    read_again = {change.name for change in changes if change.name in names}
    assert read_again == {*names[:30]}
    assert any(finding.startswith("170 more columns could be used") for finding in profile.findings)


def test_a_column_of_nearly_numbers_is_not_offered_as_a_feature_of_words(tmp_path: Path) -> None:
    values = [*(f"{row}.5" for row in range(ROWS - 1)), "len"]
    profile = profile_of(
        tmp_path, "size,n,y", [f"{value},{row % 7},{row % 2}" for row, value in enumerate(values)]
    )
    assert [(offer.change.name, offer.change.type) for offer in profile.offers] == [("size", "number")]


def test_long_names_and_values_are_cut_in_offers_and_kept_in_their_changes(tmp_path: Path) -> None:
    name, digits = f"{'n' * 300}_1", "9" * 30
    rows = [f"{digits}{row % 5},{'q' * 400 if row == 7 else row},{row % 2}" for row in range(ROWS)]
    profile = profile_of(tmp_path, f"{name},{name[:-1]}2,y", rows)
    assert {offer.change.name for offer in profile.offers} == {name, f"{name[:-1]}2"}
    for text in (*profile.findings, *(f"{offer.finding} {offer.label}" for offer in profile.offers)):
        assert len(text) < 600, text
    assert any(f"{'n' * 40}…{'n' * 17}_2" in offer.finding for offer in profile.offers)
