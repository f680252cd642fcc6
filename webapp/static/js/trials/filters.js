// The filters in force as chips, and a form that adds one by keyboard: charts set the same by dragging.
import { choice, el, icon } from "./dom.js";
import { number, trials } from "./words.js";

export class Filters {
  constructor(view) {
    this.view = view;
    this.column = "score";
    this.form = el("form", { class: "ty-filters", "aria-label": "Filter trials", submit: (event) => this.add(event) });
    this.chips = el("div", { class: "ty-chips", "aria-live": "polite" });
    this.element = el("div", {}, this.form, this.chips);
  }

  draw(count) {
    const { store } = this.view;
    const held = this.form.contains(document.activeElement);
    if (!held && this.drawn !== `${this.column} ${store.columns.size}`) this.drawForm();
    const chips = [...this.view.where].map(([key, condition]) => this.chip(key, condition));
    const picked = this.view.picked.size;
    this.chips.replaceChildren(
      el("span", { class: "text-secondary ty-small ty-num" }, count === store.size ? trials(count) : `${trials(count)} of ${store.size.toLocaleString("en")}`),
      ...chips,
      chips.length > 1 ? el("button", { type: "button", class: "btn btn-sm", click: () => this.view.clearFilters() }, "Clear filters") : "",
      picked ? el("span", { class: "ty-chip" }, `${picked} picked`, el("button", { type: "button", class: "ty-icon-button", "aria-label": "Unpick all", click: () => this.view.unpickAll() }, icon("x"))) : "",
    );
  }

  drawForm() {
    const { store } = this.view;
    const column = store.columns.get(this.column) ?? store.columns.get("score");
    this.drawn = `${this.column} ${store.columns.size}`;
    const options = [...store.columns.values()].map(({ key, label }) => ({ value: key, label }));
    const pick = choice("Filter by", options, column.key, (key) => {
      this.column = key;
      this.drawForm();
      this.form.querySelector("select").focus();
    });
    const fields = column.numeric
      ? ["from", "to"].map((name) => el("label", { class: "ty-choice" }, el("span", {}, name), el("input", { class: "form-control", name, type: "number", step: "any" })))
      : [el("label", { class: "ty-choice" }, el("span", {}, "is"), el("select", { class: "form-select", name: "one" }, column.categories.map((word) => el("option", { value: word }, word))))];
    this.form.replaceChildren(pick, ...fields, el("button", { class: "btn" }, icon("filter"), "Filter"));
  }

  add(event) {
    event.preventDefault();
    const given = new FormData(this.form);
    const column = this.view.store.columns.get(this.column);
    if (column.numeric) {
      const [from, to] = [given.get("from"), given.get("to")];
      const range = { low: from === "" ? -Infinity : Number(from), high: to === "" ? Infinity : Number(to) };
      this.view.filter(column.key, from === "" && to === "" ? null : range);
    } else {
      const before = this.view.where.get(column.key)?.one ?? [];
      this.view.filter(column.key, { one: [...new Set([...before, given.get("one")])] });
    }
  }

  chip(key, { one, low, high }) {
    const label = this.view.store.columns.get(key)?.label ?? key;
    const text = one ? one.join(" or ") : `${Number.isFinite(low) ? number(low) : ""} – ${Number.isFinite(high) ? number(high) : ""}`;
    const remove = el("button", { type: "button", class: "ty-icon-button", "aria-label": `Remove the filter on ${label}`, click: () => this.view.filter(key, null) }, icon("x"));
    return el("span", { class: "ty-chip" }, `${label}: ${text}`, remove);
  }
}
