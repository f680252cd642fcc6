"""Two users go through the whole flow by mouse and keyboard; every page is checked.

Ada uploads data, submits an experiment, watches it without a reload and requests its promotion.
Grace finds the request, approves it by keyboard, and later rolls a second version back.
"""

import pytest

from tests.browser.walk.administering import (
    administer,
    create_and_revoke_a_token,
    drain_and_enable,
    look_at_a_busy_installation,
)
from tests.browser.walk.building import build_and_submit, look_at_bundled_data, upload_data
from tests.browser.walk.cast import Cast
from tests.browser.walk.own_data import asked_by_the_command
from tests.browser.walk.releasing import (
    approve,
    approve_by_keyboard,
    ask_for_promotion,
    expect_served,
    look_at_endpoints,
    look_at_models,
    look_at_the_version,
    request_promotion,
    roll_back,
    try_it,
)
from tests.browser.walk.training import (
    look_at_the_experiment,
    look_at_the_job,
    watch_it_end,
    watch_it_run,
)
from tests.flow.yard import RunningYard

pytestmark = [pytest.mark.flow, pytest.mark.timeout(5400)]


def test_from_data_to_a_served_model_and_back(installation: RunningYard, cast: Cast) -> None:
    cast.ada.check_page("account")
    cast.ada.go("Home")
    cast.ada.check_page("home-new")
    upload_data(cast.ada)
    look_at_bundled_data(cast.ada)
    job = build_and_submit(cast.ada)
    watch_it_run(cast.ada)
    look_at_a_busy_installation(cast.root)
    watch_it_end(cast.ada)
    look_at_the_job(cast.ada)
    look_at_the_experiment(cast.ada)

    versions = versions_of(installation, job)
    best, ensemble = versions["best"], versions["ensemble"]
    ask_for_promotion(cast.ada, best, "The best single model.")
    approve_by_keyboard(cast.grace, best)
    expect_served(cast.ada, best, generation=1)
    cast.ada.check_page("endpoint")
    look_at_the_version(cast.ada, best)
    try_it(cast.ada, best)
    assert len(asked_by_the_command(cast.ada)) == 1
    request_promotion(cast.ada, ensemble, "All of them together.")
    approve(cast.grace, ensemble)
    expect_served(cast.grace, ensemble, generation=2)
    look_at_endpoints(cast.grace)
    roll_back(cast.grace, best)
    look_at_models(cast.ada)

    create_and_revoke_a_token(cast.ada)
    administer(cast.root)
    drain_and_enable(cast.root)
    cast.ada.go("Home")
    cast.ada.check_page("home")


def versions_of(installation: RunningYard, job: int) -> dict[str, int]:
    entries = installation.until_completed(job)["results"]["versions"]
    return {entry["what"]: int(entry["number"]) for entry in entries}
