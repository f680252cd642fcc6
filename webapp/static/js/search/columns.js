// The menu that chooses the columns of the table: a checkbox for each, in groups.

import { el, icon } from "../shared/dom.js";
/** @import { Column } from "./types.js" */
/** @import { View } from "./view.js" */
import { findAll } from "../shared/elements.js";

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
    const keys = view.shownColumns;
    const shown = columns.filter(({ key }) => keys.has(key)).length;
    this.label.textContent = shown === columns.length ? "Columns" : `Columns: ${shown} of ${columns.length}`;
    const names = columns.map(({ key }) => key).join();
    if (this.drawn !== names) this.drawBoxes(columns);
    this.drawn = names;
    for (const box of findAll(this.boxes, "input", HTMLInputElement)) box.checked = keys.has(box.value);
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
    const button = (/** @type {string} */ label, /** @type {() => Set<string> | null} */ keys) =>
      el("button", { type: "button", class: "btn btn-sm", click: () => this.view.showColumns(keys()) }, label);
    this.boxes.replaceChildren(
      ...groups.filter((group) => group !== null),
      button("Show all", () => new Set(this.view.choosable.map(({ key }) => key))),
      " ",
      button("Default", () => null),
    );
  }

  choose() {
    const boxes = findAll(this.boxes, "input", HTMLInputElement);
    this.view.showColumns(new Set(boxes.filter((box) => box.checked).map((box) => box.value)));
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
