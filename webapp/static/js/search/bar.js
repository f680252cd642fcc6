// The actions of the table: choose its columns, and compare the selected trials or make an ensemble of them.

import { el, icon } from "../shared/dom.js";
/** @import { View } from "./view.js" */
import { find } from "../shared/elements.js";
import { Columns } from "./columns.js";

const LEAST = 2;

export class Bar {
  /** @type {number[]} */
  chosen = [];

  /**
   * @param {View} view
   * @param {string | null} ensemble the address that makes an ensemble of the selected trials, where that is allowed
   */
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

  /** @param {string} address */
  poolForm(address) {
    const field = (/** @type {string} */ name, value = "") => el("input", { type: "hidden", name, value });
    const button = el("button", { class: "btn btn-sm" }, icon("layers-intersect"), "Create ensemble");
    return el("form", { action: address, class: "ty-inline", "data-start": "" }, field("trials"), button);
  }

  draw() {
    this.columns.draw();
    const { store, selected } = this.view;
    this.chosen = [...selected].filter((trial) => store.place.has(trial)).sort((a, b) => a - b);
    const few = this.chosen.length < LEAST;
    this.compare.disabled = few;
    this.hint.textContent = this.hintText(few);
    if (!this.pool) return;
    find(this.pool, "button", HTMLButtonElement).disabled = few;
    find(this.pool, "[name=trials]", HTMLInputElement).value = this.chosen.join();
  }

  /** @param {boolean} few */
  hintText(few) {
    if (few) return `Select two trials or more to compare them${this.pool ? " or make an ensemble of them" : ""}.`;
    return this.pool ? `A new job will train these ${this.chosen.length} trials again and combine their models.` : "";
  }

  async openComparison() {
    await import("./compare.js");
    this.view.compare(this.chosen);
    const panel = find(document, "ty-compare", HTMLElement);
    panel.scrollIntoView({ block: "start" });
    find(panel, "h2", HTMLElement).focus({ preventScroll: true });
  }
}
