"""Declares the credentials with which a project fetches data."""

import json
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, model_validator

from jobs.spec.data.addresses import Address, BadAddress, canonical_host, host_and_port, parse

GOOGLE_TOKENS = "https://oauth2.googleapis.com/token"
_TEXT = re.compile(r"[\x21-\x7e]+")
_PART_OF_HEADER = re.compile(r"[^\x00-\x1f\x7f]+")
LABELS = {
    "s3": "S3 key",
    "bearer": "HTTPS bearer token",
    "basic": "HTTPS user and password",
    "gcs": "Google service account",
}
"""The credential kinds' names for people."""


class _Credential(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def fits(self, address: Address) -> bool:
        """Return whether the credential is for an address."""
        raise NotImplementedError

    def place(self) -> str:
        """Describe where the credential is used; empty if at all addresses of its kind."""
        return ""

    def to_json(self) -> str:
        """Return all fields with the secrets in clear, to be sealed."""
        body = {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in dict(self).items()
        }
        return json.dumps(body)


def _endpoint(text: str) -> Address:
    """Return an S3 endpoint's address: a scheme, a host and perhaps a port.

    Raises:
        ValueError: it is none.
    """
    try:
        address = parse(text.rstrip("/"))
    except BadAddress as error:
        raise ValueError(f"endpoint: {error}") from error
    if address.scheme not in ("https", "http") or address.path != "/":
        raise ValueError("endpoint: give https://host or https://host:port")
    return address


class S3Credential(_Credential):
    """A key of S3 or of a server that speaks its protocol."""

    kind: Literal["s3"] = "s3"
    key_id: str = Field(min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$", examples=["AKIA…"])
    secret: SecretStr = Field(min_length=1, max_length=1000, description="The secret access key.")
    region: str = Field("", max_length=100, pattern=r"^[a-z0-9-]*$", examples=["eu-central-1"])
    endpoint: str = Field(
        "", max_length=500, description="`https://host[:port]` of another server than Amazon's."
    )

    @model_validator(mode="after")
    def _endpoint_is_valid(self) -> Self:
        if self.endpoint:
            _endpoint(self.endpoint)
        return self

    def endpoint_address(self) -> Address | None:
        """Return the endpoint's address, or None for Amazon's."""
        return _endpoint(self.endpoint) if self.endpoint else None

    def fits(self, address: Address) -> bool:
        """Return whether it is an S3 address."""
        return address.scheme == "s3"

    def place(self) -> str:
        """Return the endpoint or the region."""
        return self.endpoint or self.region


class _HttpsCredential(_Credential):
    host: str = Field(
        max_length=300, description="`host` or `host:port`: the only one to which it is sent.",
        examples=["data.example.org"],
    )  # fmt: skip

    @model_validator(mode="after")
    def _host_is_valid(self) -> Self:
        self._origin()
        return self

    def _origin(self) -> tuple[str, int]:
        try:
            address = parse(f"https://{self.host}")
        except BadAddress as error:
            raise ValueError(f"host: {error}") from error
        if address.path != "/" or "?" in self.host or "#" in self.host:
            raise ValueError("host: give a host or host:port without a path")
        return canonical_host(address.host), address.port

    def fits(self, address: Address) -> bool:
        """Return whether an address has the host and the port to which the secret may be sent."""
        # Also over plain HTTP, which an administrator must have allowed for this host and port.
        return address.scheme in ("https", "http") and (address.host, address.port) == self._origin()

    def place(self) -> str:
        """Return the host."""
        return host_and_port(*self._origin(), "https")


class BearerCredential(_HttpsCredential):
    """A token that is sent to one host."""

    kind: Literal["bearer"] = "bearer"
    token: SecretStr = Field(min_length=1, max_length=8000)

    @model_validator(mode="after")
    def _token_is_valid(self) -> Self:
        if not _TEXT.fullmatch(self.token.get_secret_value()):
            raise ValueError("token: it has spaces or characters that a header cannot have")
        return self


class BasicCredential(_HttpsCredential):
    """A user name and a password that are sent to one host."""

    kind: Literal["basic"] = "basic"
    user: str = Field(min_length=1, max_length=300)
    password: SecretStr = Field(max_length=1000)

    @model_validator(mode="after")
    def _user_is_valid(self) -> Self:
        if ":" in self.user or not _PART_OF_HEADER.fullmatch(self.user):
            raise ValueError("user: it has no colon and no control characters")
        return self


class GcsCredential(_Credential):
    """A service account of Google Cloud."""

    kind: Literal["gcs"] = "gcs"
    account: SecretStr = Field(min_length=2, max_length=20_000, description="The JSON file of the account.")

    @model_validator(mode="after")
    def _account_is_valid(self) -> Self:
        try:
            account = json.loads(self.account.get_secret_value())
        except ValueError:
            account = None
        if not isinstance(account, dict) or account.get("type") != "service_account":
            raise ValueError("account: give the JSON file of a service account")
        # The library sends a signed request there.
        if account.get("token_uri") != GOOGLE_TOKENS:
            raise ValueError(f"account: token_uri must be {GOOGLE_TOKENS}")
        return self

    def fits(self, address: Address) -> bool:
        """Return whether it is a Google Cloud Storage address."""
        return address.scheme == "gs"


type Credential = S3Credential | BearerCredential | BasicCredential | GcsCredential
CREDENTIAL: TypeAdapter[Credential] = TypeAdapter(Annotated[Credential, Field(discriminator="kind")])
KINDS: dict[str, type[_Credential]] = {
    "s3": S3Credential,
    "bearer": BearerCredential,
    "basic": BasicCredential,
    "gcs": GcsCredential,
}
