// The current filters as chips, and a form that adds one by keyboard; charts add the same by dragging.

import { choice, el, icon } from "../shared/dom.js";
/** @import { View } from "./view.js" */
import { find } from "../shared/elements.js";
import { Chips } from "./chips.js";

export class Filters {
  /** The column and number of columns that the form shows. */
  drawn = "";

  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.column = "score";
    this.form = el("form", {
      class: "ty-filters",
      "aria-label": "Filter trials",
      submit: (/** @type {SubmitEvent} */ event) => this.add(event),
    });
    this.chips = new Chips(view, true);
    this.element = el("div", { class: "ty-trial-filters" }, this.form, this.chips.element);
  }

  /** @param {number} count */
  draw(count) {
    const held = this.form.contains(document.activeElement);
    if (!held && this.drawn !== `${this.column} ${this.view.store.columns.size}`) this.drawForm();
    this.chips.draw(count);
  }

  drawForm() {
    const { store } = this.view;
    const column = store.columns.get(this.column) ?? store.column("score");
    this.drawn = `${this.column} ${store.columns.size}`;
    const options = [...store.columns.values()].map(({ key, label }) => ({ value: key, label }));
    const pick = choice("Filter by", options, column.key, (key) => {
      this.column = key;
      this.drawForm();
      find(this.form, "select", HTMLSelectElement).focus();
    });
    const fields = column.numeric
      ? ["from", "to"].map((name) =>
          el(
            "label",
            { class: "ty-choice" },
            el("span", {}, name),
            el("input", { class: "form-control", name, type: "number", step: "any" }),
          ),
        )
      : [
          el(
            "label",
            { class: "ty-choice" },
            el("span", {}, "is"),
            el(
              "select",
              { class: "form-select", name: "one" },
              (column.categories ?? []).map((word) => el("option", { value: word }, word)),
            ),
          ),
        ];
    this.form.replaceChildren(pick, ...fields, el("button", { class: "btn" }, icon("filter"), "Filter"));
  }

  /** @param {SubmitEvent} event */
  add(event) {
    event.preventDefault();
    const given = new FormData(this.form);
    const column = this.view.store.column(this.column);
    if (column.numeric) {
      const [from, to] = [given.get("from"), given.get("to")];
      const range = { low: from === "" ? -Infinity : Number(from), high: to === "" ? Infinity : Number(to) };
      this.view.filter(column.key, from === "" && to === "" ? null : range);
    } else {
      const before = this.view.where.get(column.key)?.one ?? [];
      this.view.filter(column.key, { one: [...new Set([...before, String(given.get("one"))])] });
    }
  }
}
