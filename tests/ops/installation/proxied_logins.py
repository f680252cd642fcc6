"""Logs in through a proxy and past it, in a network of its own; prints the answers as JSON.

Arguments: the gateway of the network, the address of another container, the SQLite file of the dashboard, and
its command.
"""

import contextlib
import json
import sqlite3
import subprocess
import sys
import time

import httpx2

NAME, PASSWORD, WRONG = "ada", "a long enough passphrase", 3


def enter(source: str, forwarded: str, *, name: str, password: str, to: str) -> int:
    """Return the status of one attempt of a new browser."""
    transport = httpx2.HTTPTransport(local_address=source)
    headers = {"X-Forwarded-For": forwarded, "X-Forwarded-Proto": "http", "Host": "localhost"}
    with httpx2.Client(transport=transport, headers=headers, base_url=to, timeout=60) as browser:
        page = browser.get("/accounts/login/").text
        token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        form = {"login": name, "password": password, "csrfmiddlewaretoken": token}
        return browser.post("/accounts/login/", data=form).status_code


def fail_often(database: str) -> None:
    """Count so many failures for each address with some that the next one has the longest delay.

    As many attempts would do the same; but on a slow machine the short delays before end between them.
    """
    with contextlib.closing(sqlite3.connect(database, timeout=60)) as connection, connection:
        connection.execute("UPDATE jobs_loginattempts SET failures = 100 WHERE failures >= ?", [WRONG])


def main(gateway: str, container: str, port: str, database: str, *command: str) -> None:
    """Run all attempts."""
    for words in (
        ["link", "set", "lo", "up"],
        *(["addr", "add", each, "dev", "lo"] for each in (gateway, container)),
    ):
        subprocess.run(["ip", *words], check=True)
    to = f"http://{gateway}:{port}"
    with subprocess.Popen(command, stdout=sys.stderr, stderr=sys.stderr) as dashboard:
        try:
            wait_for_answer(f"{to}/healthz")
            outside = []
            for number in range(WRONG + 1):
                outside.append(enter(gateway, "203.0.113.5", name=f"name{number}", password="wrong", to=to))
                fail_often(database)
            other = enter(gateway, "198.51.100.7", name=NAME, password=PASSWORD, to=to)
            same = enter(gateway, "203.0.113.5", name=NAME, password=PASSWORD, to=to)
            forged = []
            for number in range(WRONG + 2):
                source, name = f"198.51.100.{number}", f"forged{number}"
                forged.append(enter(container, source, name=name, password="wrong", to=to))
                fail_often(database)
            answers = {"outside": outside, "other": other, "same": same, "forged": forged}
            sys.stdout.write(json.dumps(answers))
        finally:
            dashboard.terminate()


def wait_for_answer(url: str) -> None:
    """Wait until the dashboard answers."""
    while True:
        try:
            if httpx2.get(url, headers={"Host": "localhost"}).is_success:
                return
        except httpx2.HTTPError:
            pass
        time.sleep(0.2)


if __name__ == "__main__":
    main(*sys.argv[1:])
