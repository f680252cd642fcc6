"""A backup that is made while a model trains, and its restore on another machine with another database."""

import shutil
from contextlib import suppress

import boto3

from tests.deploy import work
from tests.deploy.team import QUICK, SCHEDULER, STORE_KEYS, WORKER, Inside, Postgres, Team
from tests.ops.conftest import wait_for
from tests.ops.guide_commands import Command, command

COPY = "s3://trainyard-copy/artifacts"


def manage(team: Team, machine: str, *words: str) -> str:
    """Run a management command with a machine's variables."""
    script = f"set -a; . /srv/trainyard.env; .venv/bin/python manage.py {' '.join(words)}"
    return team[machine].run("sh", "-euc", script, environment=QUICK)


def copy_store(team: Team) -> None:
    """Copy the artifact store, as an operator does who wants to try the copy of an installation."""
    client = boto3.client("s3", endpoint_url=f"http://{team['store'].address}:9000", **STORE_KEYS)
    client.create_bucket(Bucket="trainyard-copy")
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="trainyard"):
        for entry in page["Contents"]:
            source = {"Bucket": "trainyard", "Key": entry["Key"]}
            # A checkpoint may be deleted meanwhile, since a newer one replaces it.
            with suppress(client.exceptions.NoSuchKey):
                client.copy_object(Bucket="trainyard-copy", Key=entry["Key"], CopySource=source)


def test_a_backup_during_a_training_is_restored_elsewhere_and_the_training_goes_on_there(team: Team) -> None:
    work.served_model(team)
    job = work.training(team)
    manage(team, "web-1", "backup", "/srv/backup.tar")
    saved = work.state_of(team, job)
    copy_store(team)
    elsewhere = team["elsewhere"]
    shutil.copy(team["web-1"].disk / "backup.tar", elsewhere.disk / "backup.tar")
    shutil.copy(team.certificate, elsewhere.disk / "ca.pem")
    database = Postgres(elsewhere)
    database.create()
    database.start()
    wait_for(database.answers, "the other PostgreSQL")
    roles: Command = command(20, "CREATE ROLE")
    elsewhere.run("sh", "-euc", roles.script({"sudo -u postgres psql": " ".join(database.psql)}))
    variables = command(20, "cat > /srv/trainyard.env")
    other = {
        "@database/": "@elsewhere/",
        "s3://trainyard/artifacts": COPY,
        "@broker:6379/0": "@broker:6379/1",
    }
    elsewhere.run("sh", "-euc", variables.script(other))
    manage(team, "elsewhere", "backup", "--verify", "/srv/backup.tar")
    manage(team, "elsewhere", "restore", "/srv/backup.tar")
    manage(team, "elsewhere", "audit", "verify")
    assert "of another installation" in manage(team, "elsewhere", "version")
    manage(team, "elsewhere", "adopt-store")
    for name in ("secret.key", "release.key"):
        homes = [team[machine].disk / "state" / name for machine in ("web-1", "elsewhere")]
        assert homes[0].read_bytes() == homes[1].read_bytes()

    team.start_page("elsewhere", "scheduler", SCHEDULER)
    team.start_page("elsewhere", "worker", WORKER)
    inside = Inside(elsewhere)
    try:

        def resumed() -> bool:
            attempts = inside.call("tests.deploy.inside", "training", job)["attempts"]
            return len(attempts) > len(saved["attempts"]) and attempts[-1]["epochs"] > 0

        seconds = work.seconds_until(resumed, "the training to resume elsewhere", 240)
        restored = inside.call("tests.deploy.inside", "training", job)
    finally:
        inside.close()
        elsewhere.end()
    new = restored["attempts"][-1]
    resumed_from = new["resumed"][0] if new["resumed"] else 0
    work.note("restored elsewhere", seconds_until_it_trains=seconds, resumed_from=resumed_from)
    assert new["worker"] == "elsewhere"
    # The copied store may have only checkpoints that are newer than the backup: then the job has a warning.
    assert resumed_from > 0 or "restarted" in restored["warnings"]
    assert work.until_trained_further(team, job) < 60, "the original is not touched"
