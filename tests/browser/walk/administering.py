"""Steps on the pages of tokens, people, the audit log, projects and workers."""

import re

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.flow.yard import PROJECT


def look_at_a_busy_yard(who: Visitor) -> None:
    """Check the home page of an administrator while a job runs."""
    who.go("Home")
    who.see("home-busy")
    who.go("People")  # this page has no live updates, which would load the server


def create_and_revoke_a_token(who: Visitor) -> None:
    page = who.page
    who.go("Tokens")
    page.get_by_label("Purpose").fill("notebook")
    who.send("Create token")
    expect(page.get_by_test_id("token")).to_be_visible()
    who.see("token-made")
    who.follow(page.get_by_role("link", name="Done"))
    who.see("tokens")
    row = page.get_by_role("row", name=re.compile("notebook"))
    row.get_by_role("button", name="Revoke").click()
    who.confirm("Revoke")
    expect(row).to_have_count(0)


def administer(who: Visitor) -> None:
    page = who.page
    who.go("People")
    page.get_by_label("User name").fill("newcomer")
    who.send("Create a login link")
    who.see("person-link")
    who.follow(page.get_by_role("link", name="Done"))
    expect(page.get_by_role("row", name=re.compile("newcomer"))).to_be_visible()
    who.see("people")
    who.go("Audit")
    who.see("audit")
    who.follow(page.get_by_role("link", name="Verify the chain"))
    expect(page.get_by_role("main")).to_contain_text("releases are valid")
    expect(page.get_by_text("The last rows are missing")).to_have_count(0)
    who.see("audit-verify")
    who.go("Projects")
    who.see("projects")
    page.goto(f"/p/{PROJECT}/settings")
    expect(page.get_by_label("Role of grace")).to_be_visible()


def drain_and_enable(who: Visitor) -> None:
    page = who.page
    who.go("Workers")
    who.press("Drain")
    who.confirm("Drain")
    expect(page.get_by_role("button", name="Enable")).to_be_visible()
    who.see("workers-draining")
    who.press("Enable")
    expect(page.get_by_role("button", name="Drain")).to_be_visible()
    who.follow(page.locator(".card a").first)
    expect(page.get_by_role("heading", name="Devices")).to_be_visible()
    who.go("Queue")
    who.see("queue")
