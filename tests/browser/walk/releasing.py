"""Steps in which Ada requests a promotion, Grace decides, and the endpoint is tried and rolled back."""

import re

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.browser.walk.building import MODEL


def ask_for_promotion(who: Visitor, version: int, why: str) -> None:
    open_candidate(who, version)
    who.see("version-candidate")
    request(who, why)
    who.see("approval-asked")


def request_promotion(who: Visitor, version: int, why: str) -> None:
    """Request a promotion without taking screenshots."""
    open_candidate(who, version)
    request(who, why)


def open_candidate(who: Visitor, version: int) -> None:
    open_version(who, version)
    expect(who.page.locator(".ty-title .ty-state").first).not_to_have_text("validating")
    who.page.reload()


def request(who: Visitor, why: str) -> None:
    who.page.get_by_label("Why").fill(why)
    who.send("Request promotion")
    who.mark()
    expect(who.card("Gates").locator(".card-header .ty-state")).to_have_text("pending")
    who.assert_not_reloaded()


def approve_by_keyboard(who: Visitor, version: int) -> None:
    page = who.page
    who.go("Home")
    who.see("home-approver")
    expect(page.get_by_role("navigation", name="Main").get_by_label("1 waiting")).to_be_visible()
    who.go("Approvals")
    who.see("approvals")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/approvals/*")
    who.see("approval")
    for box in page.locator("[name=accept]").all():
        box.focus()
        page.keyboard.press("Space")
    who.card("Decide").get_by_label("Comment").focus()
    page.keyboard.type("Gates passed; numbers hold.")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Approve")).to_be_focused()
    page.keyboard.press("Enter")
    expect_released(who, version)
    who.see("approval-released")


def approve(who: Visitor, version: int) -> None:
    who.go("Approvals", re.compile("Request"))
    for box in who.page.locator("[name=accept]").all():
        box.check()
    who.press("Approve")
    expect_released(who, version)


def expect_released(who: Visitor, version: int) -> None:
    expect(who.page.get_by_role("heading", level=1)).to_have_text(f"{MODEL} v{version} to production")
    expect(who.card("Gates").locator(".card-header .ty-state")).to_have_text("released")
    expect(who.card("Outcome").locator(".ty-state")).to_have_text("released")


def open_version(who: Visitor, version: int) -> None:
    who.go("Models", MODEL, f"v{version}")


def expect_served(who: Visitor, version: int, *, generation: int) -> None:
    who.go("Endpoints", MODEL)
    expect(who.card("Replicas").locator(".card-header")).to_contain_text("all replicas are current")
    expect(who.page.locator(".ty-kpi", has_text="Production")).to_contain_text(f"v{version}")
    expect(who.page.locator(".ty-kpi", has_text="Generation")).to_contain_text(str(generation))


def look_at_endpoints(who: Visitor) -> None:
    who.go("Endpoints")
    who.see("endpoints")


def look_at_the_version(who: Visitor, version: int) -> None:
    open_version(who, version)
    who.see("version")
    for tab in ("Evaluation", "Layers", "Files", "Card", "Use it"):
        who.tab(tab)
        who.see(f"version-{tab.lower().replace(' ', '-')}")


def try_it(who: Visitor, version: int) -> None:
    page = who.page
    who.go("Endpoints", MODEL, "Try it")
    page.get_by_role("spinbutton").first.fill("5.1")
    page.get_by_role("button", name="Predict").click()
    expect(page.locator("#answer .ty-answer")).to_be_visible()
    expect(who.card("Answer")).to_contain_text(f"{MODEL} v{version}")


def roll_back(who: Visitor, target: int) -> None:
    page = who.page
    who.go("Endpoints", MODEL)
    who.card("Roll back").get_by_role("textbox").fill("The gauges disagree.")
    page.get_by_role("button", name=f"Roll back to v{target}").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"v{target} answers every prediction")
    who.confirm("Roll back")
    history = who.card("History").locator("tbody tr").first
    expect(history).to_contain_text("rolled back")
    expect(history).to_contain_text("The gauges disagree.")
    expect(who.card("Replicas").locator(".card-header")).to_contain_text("all replicas are current")
    expect(page.locator(".ty-kpi", has_text="Production")).to_contain_text(f"v{target}")
    who.see("endpoint-rolled-back")


def look_at_models(who: Visitor) -> None:
    who.go("Models")
    who.see("models")
    who.go("Models", MODEL)
    who.see("model")
    who.go("Approvals", "All")
    who.see("approvals-all")
