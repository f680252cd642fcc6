// Which columns the table shows: a box each, in groups, that open from a button.
import { el, icon } from "./dom.js";

const GROUPS = [
  ["hyperparameter", "Hyperparameters"],
  ["metric", "Metrics"],
  ["fact", "Facts"],
];

export class Columns {
  constructor(view) {
    this.view = view;
    this.title = el("summary", { class: "btn btn-sm" }, icon("columns"), el("span"));
    this.boxes = el("div", { class: "ty-menu-body" });
    this.element = el("details", { class: "ty-menu", keydown: (event) => this.key(event) }, this.title, this.boxes);
    document.addEventListener("click", (event) => this.element.contains(event.target) || this.close());
  }

  draw() {
    const { view } = this;
    const columns = view.choosable;
    const shown = columns.filter(({ key }) => !view.shown || view.shown.has(key)).length;
    this.title.lastElementChild.textContent =
      shown === columns.length ? "Columns" : `Columns: ${shown} of ${columns.length}`;
    const names = columns.map(({ key }) => key).join();
    if (this.drawn !== names) this.drawBoxes(columns);
    this.drawn = names;
    for (const box of this.boxes.querySelectorAll("input")) box.checked = !view.shown || view.shown.has(box.value);
  }

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
    this.boxes.replaceChildren(...groups.filter(Boolean), all);
  }

  choose() {
    const boxes = [...this.boxes.querySelectorAll("input")];
    const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
    this.view.showColumns(chosen.length === boxes.length ? null : new Set(chosen));
  }

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
