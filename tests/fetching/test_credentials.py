"""Credentials of a project are written by its admins, and read by no one."""

import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client

from jobs.models import AuditEvent, Credential, User
from tests.fetching.making import make_admin
from tests.world import World

SECRET = "t0p-s3cr3t-v4lue"
PATH = "/api/v1/projects/yard/credentials"
BODIES: dict[str, dict[str, str]] = {
    "s3": {"kind": "s3", "key_id": "AKIA", "secret": SECRET, "region": "eu-central-1"},
    "bearer": {"kind": "bearer", "host": "Data.Example.org", "token": SECRET},
    "basic": {"kind": "basic", "host": "data.example.org:8443", "user": "ada", "password": SECRET},
    "gcs": {
        "kind": "gcs",
        "account": json.dumps(
            {
                "type": "service_account",
                "token_uri": "https://oauth2.googleapis.com/token",
                "private_key": SECRET,
            }
        ),
    },
}


@pytest.fixture
def admin(world: World) -> User:
    return make_admin(world)


def put(client: Client, body: Any, name: str = "mine") -> Any:
    return client.put(f"{PATH}/{name}", json.dumps(body), content_type="application/json")


@pytest.mark.parametrize("kind", BODIES)
def test_a_saved_credential_shows_all_but_its_secret(kind: str, world: World, admin: User) -> None:
    client = world.client(admin)
    answer = put(client, BODIES[kind])
    assert answer.status_code == 201
    assert {"name", "kind", "place", "created_by", "created"} == set(answer.json())
    assert (answer.json()["kind"], answer.json()["created_by"]) == (kind, "ada")
    assert put(client, BODIES[kind]).status_code == 200
    pages = [
        client.get(path).content.decode() for path in (PATH, "/p/yard/settings", "/audit", "/api/v1/audit")
    ]
    assert "mine" in pages[0] and "mine" in pages[1]
    assert SECRET not in "".join(pages) and SECRET not in answer.content.decode()
    assert SECRET not in str(list(AuditEvent.objects.values())) + str(list(Credential.objects.values()))


def test_no_table_of_the_database_has_the_secret(world: World, admin: User, tmp_path: Any) -> None:
    put(world.client(admin), BODIES["s3"])
    call_command("dumpdata", "--all", output=str(tmp_path / "all.json"))
    assert SECRET not in (tmp_path / "all.json").read_text()
    assert connection.vendor


def test_only_admins_of_the_project_change_credentials(world: World, admin: User) -> None:
    assert put(world.client(world.owner), BODIES["s3"]).status_code == 403
    assert put(world.client(world.viewer), BODIES["s3"]).status_code == 403
    assert put(world.client(world.stranger), BODIES["s3"]).status_code == 404
    put(world.client(admin), BODIES["s3"])
    assert world.client(world.owner).get(PATH).json()["items"][0]["name"] == "mine"
    assert world.client(world.viewer).get(PATH).status_code == 403
    assert world.client(world.stranger).get(PATH).status_code == 404
    assert world.client(world.owner).delete(f"{PATH}/mine").status_code == 403
    assert world.client(admin).delete(f"{PATH}/mine").status_code == 204
    assert not Credential.objects.exists()
    assert world.client(admin).delete(f"{PATH}/mine").status_code == 404
    actions = AuditEvent.objects.filter(action__startswith="credential").values_list("action", flat=True)
    assert set(actions) == {"credential.save", "credential.delete"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"kind": "ftp"}, ""),
        ({"kind": "s3", "secret": SECRET}, "/key_id"),
        ({**BODIES["s3"], "secret": ""}, "/secret"),
        ({**BODIES["s3"], "secret": [SECRET]}, "/secret"),
        ({**BODIES["s3"], "endpoint": "ftp://x"}, "/endpoint"),
        ({**BODIES["s3"], "endpoint": "https://x/path"}, "/endpoint"),
        ({**BODIES["s3"], "endpoint": f"https://u:{SECRET}@x"}, "/endpoint"),
        ({**BODIES["bearer"], "host": "x/y"}, "/host"),
        ({**BODIES["bearer"], "host": f"u:{SECRET}@x"}, "/host"),
        ({**BODIES["bearer"], "token": f"{SECRET}\r\nX: y"}, "/token"),
        ({**BODIES["basic"], "user": "a:b"}, "/user"),
        ({**BODIES["basic"], "more": SECRET}, "/more"),
        ({"kind": "gcs", "account": SECRET}, "/account"),
        (
            {"kind": "gcs", "account": '{"type": "service_account", "token_uri": "http://10.0.0.1/"}'},
            "/account",
        ),
        ([SECRET], ""),
        (SECRET, ""),
    ],
)
def test_a_refusal_names_the_field_and_repeats_no_value(
    body: Any, pointer: str, world: World, admin: User
) -> None:
    answer = put(world.client(admin), body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer
    assert SECRET not in answer.content.decode()


def test_a_name_must_be_a_slug(world: World, admin: User) -> None:
    assert put(world.client(admin), BODIES["s3"], name="Not a slug").json()["errors"][0]["pointer"] == "/name"


def test_admins_save_and_delete_credentials_on_pages_that_never_repeat_a_secret(
    world: World, admin: User
) -> None:
    client = world.client(admin)
    assert "Access key id" in client.get("/p/yard/credentials/new").content.decode()
    form = {"name": "Bad name", "host": "data.example.org", "token": SECRET}
    refused = client.post("/p/yard/credentials/new?kind=bearer", form)
    assert refused.status_code == 422 and SECRET not in refused.content.decode()
    bad = client.post("/p/yard/credentials/new?kind=gcs", {"name": "g", "account": SECRET})
    assert bad.status_code == 422 and SECRET not in bad.content.decode()
    saved = client.post("/p/yard/credentials/new?kind=bearer", form | {"name": "web"})
    assert saved.status_code == 303
    page = client.get("/p/yard/settings").content.decode()
    assert "data.example.org" in page and "HTTPS bearer token" in page and SECRET not in page
    assert world.client(world.owner).get("/p/yard/credentials/new").status_code == 403
    assert world.client(world.owner).post("/p/yard/credentials/web/delete").status_code in (303, 403)
    assert Credential.objects.count() == 1
    assert client.post("/p/yard/credentials/web/delete").status_code == 303
    assert not Credential.objects.exists()


def test_a_viewer_sees_no_credentials_in_the_settings(world: World, admin: User) -> None:
    put(world.client(admin), BODIES["s3"])
    assert "Credentials" not in world.client(world.viewer).get("/p/yard/settings").content.decode()


def test_django_s_admin_does_not_show_the_encrypted_secret(world: World, admin: User) -> None:
    put(world.client(admin), BODIES["s3"])
    User.objects.filter(pk=admin.pk).update(is_superuser=True, is_staff=True)
    row = Credential.objects.get()
    client = world.client(User.objects.get(pk=admin.pk))
    for path in ("/admin/jobs/credential/", f"/admin/jobs/credential/{row.pk}/change/"):
        page = client.get(path)
        assert page.status_code == 200 and row.sealed not in page.content.decode()
