// The current filters and the selection as chips, each with a button that removes it.

/** @import { Condition } from "./types.js" */
/** @import { View } from "./view.js" */
import { el, icon, setText } from "../shared/dom.js";
import { grouped, number, setting, trials } from "../shared/words.js";

const MOST_NAMED = 8; // selected trials

export class Chips {
  /** @type {string | undefined} */
  shown;
  count = el("span", { class: "text-secondary ty-small ty-num" });

  /**
   * @param {View} view
   * @param {boolean} announced changes are read to people who do not see them
   */
  constructor(view, announced = false) {
    this.view = view;
    this.element = el("div", { class: "ty-chips", "aria-live": announced && "polite", tabindex: "-1" });
  }

  /** @param {number} count of the trials that fit the filters */
  draw(count) {
    const { store, where, selected } = this.view;
    setText(this.count, count === store.size ? trials(count) : `${trials(count)} of ${grouped(store.size)}`);
    const key = `${[...where].map(([name, condition]) => `${name} ${JSON.stringify(condition)}`)} ${[...selected]}`;
    if (this.shown === key) return;
    this.shown = key;
    const chips = [...where].map(([name, condition]) => this.chip(name, condition));
    const all = el("button", { type: "button", class: "btn btn-sm" }, "Clear filters");
    all.addEventListener("click", () => this.remove(() => this.view.clearFilters()));
    this.element.replaceChildren(
      this.count,
      ...chips,
      chips.length > 1 ? all : "",
      selected.size ? this.selection([...selected]) : "",
    );
  }

  /** @param {number[]} selected */
  selection(selected) {
    const named = [...selected].sort((a, b) => a - b);
    const text = named.length > MOST_NAMED ? "" : `: ${named.join(", ")}`;
    return removable(`${selected.length} selected${text}`, "Clear selection", () =>
      this.remove(() => this.view.clearSelection()),
    );
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
    return removable(`${label}: ${text}`, `Remove the filter on ${label}`, () =>
      this.remove(() => this.view.filter(key, null)),
    );
  }

  /**
   * Remove filters or the selection. The button disappears with its chip, so the focus moves to the chips and not to
   * the top.
   * @param {() => void} remove
   */
  remove(remove) {
    this.element.focus({ preventScroll: true });
    remove();
  }
}

/**
 * @param {string} text
 * @param {string} label
 * @param {() => void} remove
 */
function removable(text, label, remove) {
  const attributes = { type: "button", class: "ty-icon-button", "aria-label": label, click: remove };
  return el("span", { class: "ty-chip" }, text, el("button", attributes, icon("x")));
}
