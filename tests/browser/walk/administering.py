"""Steps on the pages of tokens, people, the audit log, projects and workers."""

import re

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.flow.yard import PROJECT


def look_at_a_busy_installation(user: Visitor) -> None:
    """Check the home page of an administrator while a job runs."""
    user.go("Home")
    user.check_page("home-busy")
    user.go("People")  # this page has no live updates, which would load the server


def create_and_revoke_a_token(user: Visitor) -> None:
    page = user.page
    user.go("Tokens")
    page.get_by_label("Purpose").fill("notebook")
    user.send("Create token")
    expect(page.get_by_test_id("token")).to_be_visible()
    user.check_page("token-made")
    user.follow(page.get_by_role("link", name="Done"))
    user.check_page("tokens")
    row = page.get_by_role("row", name=re.compile("notebook"))
    row.get_by_role("button", name="Revoke").click()
    user.confirm("Revoke")
    expect(row).to_have_count(0)


def administer(user: Visitor) -> None:
    page = user.page
    user.go("People")
    page.get_by_label("User name").fill("newcomer")
    user.send("Invite")
    user.check_page("person-link")
    user.follow(page.get_by_role("link", name="Done"))
    expect(page.get_by_role("row", name=re.compile("newcomer"))).to_be_visible()
    user.check_page("people")
    user.go("Audit")
    user.check_page("audit")
    user.follow(page.get_by_role("link", name="Verify the chain"))
    expect(page.get_by_role("main")).to_contain_text("releases are valid")
    expect(page.get_by_text("The last rows are missing")).to_have_count(0)
    user.check_page("audit-verify")
    user.go("Projects")
    user.check_page("projects")
    page.goto(f"/p/{PROJECT}/settings")
    expect(page.get_by_label("Role of grace")).to_be_visible()


def drain_and_enable(user: Visitor) -> None:
    page = user.page
    user.go("Workers")
    user.press("Drain")
    user.confirm("Drain")
    expect(page.get_by_role("button", name="Enable")).to_be_visible()
    user.check_page("workers-draining")
    user.press("Enable")
    expect(page.get_by_role("button", name="Drain")).to_be_visible()
    user.follow(page.locator(".card a").first)
    expect(page.get_by_role("heading", name="Devices")).to_be_visible()
    user.go("Queue")
    user.check_page("queue")
