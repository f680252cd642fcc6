import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.deploy.network import require_namespaces
from tests.deploy.team import Team


@pytest.fixture(scope="package")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """The installation on several machines, seen from one that is a client."""
    require_namespaces()
    folder = tmp_path_factory.mktemp("team")
    folder.chmod(0o755)
    installation = Team(folder)
    with pytest.MonkeyPatch.context() as patch, installation.network.inside("client"):
        addresses = installation.network.addresses
        resolve = socket.getaddrinfo

        def resolve_name(host: Any, *rest: Any, **options: Any) -> Any:
            return resolve(addresses.get(host, host), *rest, **options)

        patch.setattr(socket, "getaddrinfo", resolve_name)
        patch.setenv("SSL_CERT_FILE", str(installation.certificate))
        for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
            patch.delenv(name)
        try:
            installation.open()
            yield installation
        finally:
            installation.close()
