"""Steps in which Ada requests a promotion, Grace decides, and the endpoint is tried and rolled back."""

import re

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.browser.walk.building import MODEL


def ask_for_promotion(user: Visitor, version: int, why: str) -> None:
    open_candidate(user, version)
    user.check_page("version-candidate")
    request(user, why)
    user.check_page("approval-asked")


def request_promotion(user: Visitor, version: int, why: str) -> None:
    """Request a promotion without taking screenshots."""
    open_candidate(user, version)
    request(user, why)


def open_candidate(user: Visitor, version: int) -> None:
    open_version(user, version)
    expect(user.page.locator(".ty-title .ty-state").first).not_to_have_text("validating")
    user.page.reload()


def request(user: Visitor, why: str) -> None:
    user.page.get_by_label("Reason").fill(why)
    user.send("Request promotion")
    user.mark()
    expect(user.card("Decide").locator(".card-header .ty-state")).to_have_text("waiting for a decision")
    user.assert_not_reloaded()


def approve_by_keyboard(user: Visitor, version: int) -> None:
    page = user.page
    user.go("Home")
    user.check_page("home-approver")
    expect(page.get_by_role("navigation", name="Main").get_by_label("1 waiting")).to_be_visible()
    user.go("Approvals")
    user.check_page("approvals")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/approvals/*")
    user.check_page("approval")
    for box in page.locator("[name=accept]").all():
        box.focus()
        page.keyboard.press("Space")
    user.card("Decide").get_by_label("Comment").focus()
    page.keyboard.type("Gates passed; numbers hold.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect_released(user, version)
    user.check_page("approval-released")


def approve(user: Visitor, version: int) -> None:
    user.go("Approvals", re.compile("Request"))
    for box in user.page.locator("[name=accept]").all():
        box.check()
    user.press("Approve")
    expect_released(user, version)


def expect_released(user: Visitor, version: int) -> None:
    expect(user.page.get_by_role("heading", level=1)).to_have_text(f"{MODEL} v{version} to production")
    expect(user.card("Outcome").locator(".ty-state")).to_have_text("released")


def open_version(user: Visitor, version: int) -> None:
    user.go("Models", MODEL, f"v{version}")


def expect_served(user: Visitor, version: int, *, generation: int) -> None:
    user.go("Endpoints", MODEL)
    expect(user.card("Replicas").locator(".card-header")).to_contain_text("all replicas are current")
    expect(user.page.locator(".ty-kpi", has_text="Production")).to_contain_text(f"v{version}")
    expect(user.page.locator(".ty-kpi", has_text="Generation")).to_contain_text(str(generation))


def look_at_endpoints(user: Visitor) -> None:
    user.go("Endpoints")
    user.check_page("endpoints")


def look_at_the_version(user: Visitor, version: int) -> None:
    open_version(user, version)
    user.check_page("version")
    for tab in ("Evaluation", "Layers", "Files", "Card", "Use it"):
        user.tab(tab)
        user.check_page(f"version-{tab.lower().replace(' ', '-')}")


def try_it(user: Visitor, version: int) -> None:
    page = user.page
    user.go("Endpoints", MODEL, "Try it")
    page.get_by_role("spinbutton").first.fill("5.1")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#answer .ty-answer")).to_be_visible()
    expect(user.card("Answer")).to_contain_text(f"{MODEL} v{version}")


def roll_back(user: Visitor, target: int) -> None:
    page = user.page
    user.go("Endpoints", MODEL)
    user.card("Roll back").get_by_role("textbox").fill("The gauges disagree.")
    page.get_by_role("button", name=f"Roll back to v{target}").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"v{target} answers every prediction")
    user.confirm("Roll back")
    history = user.card("History").locator("tbody tr").first
    expect(history).to_contain_text("rolled back")
    expect(history).to_contain_text("The gauges disagree.")
    expect(user.card("Replicas").locator(".card-header")).to_contain_text("all replicas are current")
    expect(page.locator(".ty-kpi", has_text="Production")).to_contain_text(f"v{target}")
    user.check_page("endpoint-rolled-back")


def look_at_models(user: Visitor) -> None:
    user.go("Models")
    user.check_page("models")
    user.go("Models", MODEL)
    user.check_page("model")
    user.go("Approvals", "All")
    user.check_page("approvals-all")
