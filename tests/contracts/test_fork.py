"""The requests to fork servers."""

import pytest
from pydantic import ValidationError

from jobs.messages.fork import FORK_REQUEST, ForkIntoSandbox, ForkRequest


@pytest.mark.parametrize(
    "request_", [ForkIntoSandbox(into_sandbox=True), ForkRequest(folder="/", environment={}, module="m")]
)
def test_a_request_is_read_as_what_it_was_sent_as(request_: ForkIntoSandbox | ForkRequest) -> None:
    assert FORK_REQUEST.validate_json(request_.model_dump_json()) == request_


@pytest.mark.parametrize("message", ["{}", '{"folder": "/", "module": "m"}', '{"into_sandbox": false}'])
def test_a_request_without_a_necessary_field_is_refused(message: str) -> None:
    with pytest.raises(ValidationError):
        FORK_REQUEST.validate_json(message)
