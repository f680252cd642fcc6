"""A variable that no part reads is refused, and an empty one counts as not set."""

import pytest

from jobs import known_variables
from jobs.known_variables import UnknownVariable, settle


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("TRAINYARD_PUBLIK_URL", "TRAINYARD_PUBLIC_URL"),
        ("TRAINYARD_LIMIT_MEMORY", "TRAINYARD_LIMIT_MEMORY_GIB"),
        ("TRAINYARD_SANDBOX_PROCESS", "TRAINYARD_SANDBOX_PROCESSES"),
        ("TRAINYARD_NODE_GRACES", "TRAINYARD_NODE_GRACE"),
        ("TRAINYARD_SERVING_MAX_CONECTIONS", "TRAINYARD_SERVING_MAX_CONNECTIONS"),
        ("TRAINYARD_PACKAGE_INDEXES", "TRAINYARD_PACKAGE_INDEX"),
        ("TRAINYARD_REQUIRE_SECOND_FACTER", "TRAINYARD_REQUIRE_SECOND_FACTOR"),
        ("Trainyard_Home", "TRAINYARD_HOME"),
    ],
)
def test_the_message_offers_the_nearest_name(misspelt: str, meant: str) -> None:
    with pytest.raises(UnknownVariable, match=f"{misspelt} is no variable .* write {meant} if"):
        settle({misspelt: "1"})


def test_all_unknown_variables_are_named_at_once_and_far_ones_get_no_suggestion() -> None:
    with pytest.raises(UnknownVariable) as refused:
        settle({"TRAINYARD_XYZZY": "1", "TRAINYARD_API_RATE": "1"})
    assert "TRAINYARD_XYZZY is no variable of Trainyard: remove it." in str(refused.value)
    assert "TRAINYARD_API_RATE" in str(refused.value)


def test_an_empty_variable_is_one_that_is_not_set() -> None:
    environment = {"TRAINYARD_STANDBY": "", "TRAINYARD_XYZZY": " ", "TRAINYARD_HOME": "/data", "OTHER": ""}
    settle(environment)
    assert environment == {"TRAINYARD_HOME": "/data", "OTHER": ""}


def test_variables_of_other_parts_of_compose_and_of_tests_are_accepted_in_silence() -> None:
    settle(dict.fromkeys(known_variables.all_names(), "1"))


def test_variables_with_which_kubernetes_announces_a_service_are_not_ours() -> None:
    settle(
        {
            "TRAINYARD_SERVICE_HOST": "10.0.0.1",
            "TRAINYARD_SERVICE_PORT": "8000",
            "TRAINYARD_SERVICE_PORT_HTTP": "8000",
            "TRAINYARD_PORT": "tcp://10.0.0.1:8000",
            "TRAINYARD_WEB_PORT_8000_TCP_ADDR": "10.0.0.1",
        }
    )
    with pytest.raises(UnknownVariable):
        settle({"TRAINYARD_PORT": "8000"})
