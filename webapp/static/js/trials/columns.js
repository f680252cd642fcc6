// The menu that chooses the columns of the table: a checkbox for each, in groups.

/** @import { Column } from "./types.js" */
/** @import { View } from "./view.js" */
import { findAll } from "../elements.js";
import { el, icon } from "./dom.js";

/** @type {[Column["kind"], string][]} */
const GROUPS = [
  ["hyperparameter", "Hyperparameters"],
  ["metric", "Metrics"],
  ["fact", "Facts"],
];

export class Columns {
  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.drawn = "";
    this.label = el("span");
    this.title = el("summary", { class: "btn btn-sm" }, icon("columns"), this.label);
    this.boxes = el("div", { class: "ty-menu-body" });
    this.element = el(
      "details",
      { class: "ty-menu", keydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
      this.title,
      this.boxes,
    );
    document.addEventListener("click", ({ target }) => {
      if (!(target instanceof Node && this.element.contains(target))) this.close();
    });
  }

  draw() {
    const { view } = this;
    const columns = view.choosable;
    const shown = columns.filter(({ key }) => !view.shown || view.shown.has(key)).length;
    this.label.textContent = shown === columns.length ? "Columns" : `Columns: ${shown} of ${columns.length}`;
    const names = columns.map(({ key }) => key).join();
    if (this.drawn !== names) this.drawBoxes(columns);
    this.drawn = names;
    for (const box of findAll(this.boxes, "input", HTMLInputElement))
      box.checked = !view.shown || view.shown.has(box.value);
  }

  /** @param {Column[]} columns */
  drawBoxes(columns) {
    const groups = GROUPS.map(([kind, title]) => {
      const mine = columns.filter((column) => column.kind === kind);
      const lines = mine.map(({ key, label }) =>
        el(
          "label",
          { class: "form-check" },
          el("input", { type: "checkbox", class: "form-check-input", value: key, change: () => this.choose() }),
          el("span", { class: "form-check-label" }, label),
        ),
      );
      return mine.length ? el("fieldset", {}, el("legend", { class: "form-label" }, title), lines) : null;
    });
    const all = el(
      "button",
      { type: "button", class: "btn btn-sm", click: () => this.view.showColumns(null) },
      "Show all",
    );
    this.boxes.replaceChildren(...groups.filter((group) => group !== null), all);
  }

  choose() {
    const boxes = findAll(this.boxes, "input", HTMLInputElement);
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    this.view.showColumns(chosen.length === boxes.length ? null : new Set(chosen));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Escape" || !this.element.open) return;
    event.stopPropagation();
    this.close();
    this.title.focus();
  }

  close() {
    this.element.open = false;
  }
}
