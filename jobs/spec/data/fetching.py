"""Declares the request for data by an address, and the limits for fetching them."""

from typing import Literal

from jobs.spec.base import Frozen

FetchMode = Literal["copy", "reference"]


class FetchRequest(Frozen):
    """Where a version's file comes from.

    Attributes:
        url: its address.
        mode: copy: the file stays in the store; reference: only until the version is ready.
        credential: the name of a credential in the project; empty without one.
        sha256: the digest that the file must have; empty accepts any.
        file_name: the file's name; empty: the last part of the path.
    """

    url: str
    mode: FetchMode = "copy"
    credential: str = ""
    sha256: str = ""
    file_name: str = ""
