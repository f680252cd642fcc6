"""A request's head is recognized when it comes again, whatever the body's length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers.serving.repeated_heads import RepeatedHead, head_of

HEAD = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nAccept: */*\r\n\r\n"


def request(body: bytes, head: bytes = HEAD) -> bytes:
    return head % len(body) + body


def body_of(head: RepeatedHead, data: bytes) -> bytes | None:
    """Return a request's body; None unless `data` is exactly one request with this head."""
    place = head.place_of_body(data)
    return None if place is None or place.end != len(data) else data[place.start :]


@given(first=st.binary(max_size=200), second=st.binary(max_size=200))
def test_a_head_is_recognized_with_a_body_of_any_length(first: bytes, second: bytes) -> None:
    head = head_of(request(first))
    assert head is not None
    assert body_of(head, request(second)) == second


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(request(b"abc")[:-1], id="incomplete"),
        pytest.param(request(b"abc") + b"P", id="followed by more"),
        pytest.param(request(b"abc", HEAD.replace(b"*/*", b"a/b")), id="another header"),
        pytest.param(request(b"abc", HEAD.replace(b"m:", b"n:")), id="another model"),
        pytest.param(request(b"abc", HEAD.replace(b"%d", b"+%d")), id="a length with a sign"),
        pytest.param(request(b"abc", HEAD.replace(b"%d", b"0000000%d")), id="a length of many digits"),
        pytest.param(request(b"abc", HEAD.replace(b"%d", b"%d, 3")), id="two lengths"),
        pytest.param(HEAD.replace(b"%d", b"") + b"abc", id="no length"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_anything_else_is_not_recognized(data: bytes) -> None:
    head = head_of(request(b"abcd"))
    assert head is not None
    assert body_of(head, data) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", id="no length"),
        pytest.param(HEAD[:-2] % 3, id="an incomplete head"),
        pytest.param(HEAD.replace(b"Accept: */*", b"content-length: 3") % 3 + b"abc", id="two lengths"),
        pytest.param(HEAD.replace(b"*/*", b"a" * 4096) % 3 + b"abc", id="a long head"),
        pytest.param(request(b"abc") + request(b"abc"), id="two requests"),
    ],
)
def test_the_head_of_other_requests_is_not_kept(data: bytes) -> None:
    assert head_of(data) is None


def test_a_length_inside_a_value_is_none() -> None:
    head = HEAD.replace(b"Accept: */*", b"X-Other: content-length: 5")
    request_head = head_of(request(b"abc", head))
    assert request_head is not None
    assert body_of(request_head, request(b"abcde", head)) == b"abcde"


@pytest.mark.parametrize("sent", [b"", b"ab"])
def test_a_head_is_kept_while_its_body_arrives(sent: bytes) -> None:
    data = HEAD % 3 + sent
    head = head_of(data)
    assert head is not None
    place = head.place_of_body(data)
    assert place is not None
    assert (place.start, place.end) == (len(HEAD % 3), len(HEAD % 3) + 3)
