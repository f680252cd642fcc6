// What can be done with the table: choose its columns, and compare or pool the trials that are picked.
import { csrfToken } from "../post.js";
import { Columns } from "./columns.js";
import { el, icon } from "./dom.js";

const LEAST = 2;

export class Bar {
  /** `ensemble` is where picked trials are sent to be pooled; without it they cannot be. */
  constructor(view, ensemble) {
    this.view = view;
    this.columns = new Columns(view);
    this.compare = el(
      "button",
      { type: "button", class: "btn btn-sm", "data-key": "c", click: () => this.openComparison() },
      icon("git-compare"),
      "Compare",
    );
    this.pool = ensemble ? this.poolForm(ensemble) : null;
    this.hint = el("span", { class: "text-secondary ty-small" });
    this.element = el("div", { class: "ty-bar" }, this.columns.element, this.compare, this.pool, this.hint);
  }

  poolForm(address) {
    const field = (name, value = "") => el("input", { type: "hidden", name, value });
    const button = el("button", { class: "btn btn-sm" }, icon("layers-intersect"), "Make ensemble");
    return el(
      "form",
      { method: "post", action: address, class: "ty-inline" },
      field("csrfmiddlewaretoken", csrfToken()),
      field("trials"),
      button,
    );
  }

  draw() {
    this.columns.draw();
    const { store, picked } = this.view;
    this.chosen = [...picked].filter((trial) => store.place.has(trial)).sort((a, b) => a - b);
    const few = this.chosen.length < LEAST;
    this.compare.disabled = few;
    this.hint.textContent = this.told(few);
    if (!this.pool) return;
    this.pool.querySelector("button").disabled = few;
    this.pool.elements.trials.value = this.chosen.join();
  }

  told(few) {
    if (few) return `Pick two trials or more to compare ${this.pool ? "or pool " : ""}them.`;
    return this.pool ? `An ensemble of these ${this.chosen.length} trains them anew, in a job of its own.` : "";
  }

  async openComparison() {
    await import("./compare.js");
    this.view.compare(this.chosen);
    const panel = document.querySelector("ty-compare");
    panel.scrollIntoView({ block: "start" });
    panel.querySelector("h2")?.focus({ preventScroll: true });
  }
}
