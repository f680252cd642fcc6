// The current filters as chips, and a form that adds one by keyboard; charts add the same by dragging.

/** @import { Condition } from "./types.js" */
/** @import { View } from "./view.js" */
import { find } from "../elements.js";
import { choice, el, icon, setText } from "./dom.js";
import { grouped, number, setting, trials } from "./words.js";

export class Filters {
  /** The column and number of columns that the form shows. */
  drawn = "";
  /** @type {string | undefined} */
  shown;

  /** @param {View} view */
  constructor(view) {
    this.view = view;
    this.column = "score";
    this.form = el("form", {
      class: "ty-filters",
      "aria-label": "Filter trials",
      submit: (/** @type {SubmitEvent} */ event) => this.add(event),
    });
    this.chips = el("div", { class: "ty-chips", "aria-live": "polite", tabindex: "-1" });
    this.count = el("span", { class: "text-secondary ty-small ty-num" });
    this.element = el("div", {}, this.form, this.chips);
  }

  /** @param {number} count */
  draw(count) {
    const { store } = this.view;
    const held = this.form.contains(document.activeElement);
    if (!held && this.drawn !== `${this.column} ${store.columns.size}`) this.drawForm();
    setText(this.count, count === store.size ? trials(count) : `${trials(count)} of ${grouped(store.size)}`);
    const selected = this.view.selected.size;
    const key = `${[...this.view.where].map(([name, condition]) => `${name} ${JSON.stringify(condition)}`)} ${selected}`;
    if (this.shown === key) return;
    this.shown = key;
    const chips = [...this.view.where].map(([name, condition]) => this.chip(name, condition));
    this.chips.replaceChildren(
      this.count,
      ...chips,
      chips.length > 1
        ? el(
            "button",
            { type: "button", class: "btn btn-sm", click: () => this.removeChips(() => this.view.clearFilters()) },
            "Clear filters",
          )
        : "",
      selected
        ? el(
            "span",
            { class: "ty-chip" },
            `${selected} selected`,
            el(
              "button",
              {
                type: "button",
                class: "ty-icon-button",
                "aria-label": "Clear selection",
                click: () => this.removeChips(() => this.view.clearSelection()),
              },
              icon("x"),
            ),
          )
        : "",
    );
  }

  /**
   * Remove filters or the selection. The button disappears with its chip, so the focus moves to the chips and not to
   * the top.
   * @param {() => void} remove
   */
  removeChips(remove) {
    this.chips.focus({ preventScroll: true });
    remove();
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

  /**
   * @param {string} key
   * @param {Condition} condition
   */
  chip(key, { one, low, high }) {
    const column = this.view.store.columns.get(key);
    const label = column?.label ?? key;
    const end = (/** @type {number | undefined} */ value) =>
      value !== undefined && Number.isFinite(value) ? (column?.isSet ? setting : number)(value) : "";
    const text = one ? one.join(" or ") : `${end(low)} – ${end(high)}`;
    const remove = el(
      "button",
      {
        type: "button",
        class: "ty-icon-button",
        "aria-label": `Remove the filter on ${label}`,
        click: () => this.removeChips(() => this.view.filter(key, null)),
      },
      icon("x"),
    );
    return el("span", { class: "ty-chip" }, `${label}: ${text}`, remove);
  }
}
