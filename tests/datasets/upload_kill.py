"""Sends an upload to the project "yard" as olga, and is killed while the file is stored. Run as a script."""

import os
import signal

import django

django.setup()

from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: E402  needs the set-up
from django.test import Client  # noqa: E402

from jobs.models import User  # noqa: E402
from jobs.store import LocalStore  # noqa: E402


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    LocalStore.put = die  # type: ignore[method-assign,assignment]
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username="olga"))
    form = {"project": "yard", "slug": "people", "file": SimpleUploadedFile("a.csv", b"a,b\n1,2\n")}
    client.post("/api/v1/datasets", form)
