// The search space as a table: ranges as texts, conditions as chips, and notes about what own code allows.

/** @import { Condition, Parameter, RangeRead } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { closest, find, findAll } from "../../shared/elements.js";
import { isSame } from "./declared-space.js";
import { RANGE_PARTS, rangeText, valuesText } from "./range-text.js";
import { CODE } from "./sheet.js";

/** The place of the search space in the spec. */
export const SPACE = "/search/space";
/** The range of a hyperparameter that the dry build has not found, until a person changes it. */
const FREE = { kind: "float", min: 0, max: 1 };
const AT_BOUND = "The best value was at a bound of this range: better ones may lie beyond.";

/** @param {Parameter} row */
export const conditionsOf = (row) => (row.when === undefined || row.when === null ? [] : [row.when].flat());

export class SpaceTable {
  /** The hyperparameters whose further fields are shown. @type {Set<string>} */
  opened = new Set();

  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    /** The hyperparameters whose range the address asks to widen. */
    this.marked = (new URLSearchParams(location.search).get("widen") ?? "").split(",").filter(Boolean);
    form.addEventListener("focusout", (event) => this.onLeave(event));
    form.addEventListener("ty:reveal", (event) => this.setOpen(closest(event, "[data-more]"), true));
    sheet.onChange(() => this.showNotes());
  }

  /** Put the focus on the first range that is to be widened. */
  showMarked() {
    const focus = () => {
      const [range] = findAll(this.form, ".es-marked .es-range input", HTMLInputElement);
      range?.focus();
      range?.scrollIntoView({ block: "center" });
    };
    // The browser puts the focus on the element that the address names, until the page is loaded.
    if (document.readyState === "complete") focus();
    else addEventListener("load", () => requestAnimationFrame(focus), { once: true });
  }

  /**
   * Fill the parts of a row that other lists do not have.
   * @param {HTMLElement} element
   * @param {Parameter} row
   * @param {number} index
   */
  fill(element, row, index) {
    const name = row.name ?? "";
    const chips = conditionsOf(row).map((condition, i) => {
      const chip = Object.assign(document.createElement("button"), { type: "button", className: "es-chip" });
      chip.textContent = `${condition?.name} = ${[condition?.in ?? []].flat().join(", ")}`;
      chip.title = `Only when ${chip.textContent}`;
      chip.dataset.chip = Array.isArray(row.when) ? `${SPACE}/${index}/when/${i}` : `${SPACE}/${index}/when`;
      return chip;
    });
    find(element, "[data-chips]", HTMLElement).replaceChildren(...chips);
    element.classList.toggle("es-marked", this.marked.includes(name));
    this.setOpen(find(element, "[data-more]", HTMLElement), this.opened.has(name));
  }

  /**
   * Show or hide the further fields of a row.
   * @param {HTMLElement | null} more
   * @param {boolean} isOpen
   */
  setOpen(more, isOpen) {
    const element = more?.closest("[data-row-of=space]");
    if (!more || !(element instanceof HTMLElement)) return;
    more.hidden = !isOpen;
    find(element, "[data-more-of]", HTMLElement).setAttribute("aria-expanded", String(isOpen));
    const name = this.sheet.space[Number(element.dataset.index)]?.name ?? "";
    if (isOpen) this.opened.add(name);
    else this.opened.delete(name);
  }

  /**
   * @param {HTMLElement} button
   * @param {HTMLElement} element
   */
  onClick(button, element) {
    const more = find(element, "[data-more]", HTMLElement);
    if ("moreOf" in button.dataset) this.setOpen(more, more.hidden === true);
    if (button.dataset.chip === undefined) return;
    this.setOpen(more, true);
    document.getElementById(`at/spec${button.dataset.chip}/in`)?.focus();
  }

  /** Show under each row what own code allows, where the row differs; and why a row is marked. */
  showNotes() {
    const declared = this.sheet.templateName === CODE ? (this.sheet.built?.ranges ?? {}) : {};
    for (const element of findAll(this.form, '[data-row-of="space"]', HTMLElement)) {
      const row = this.sheet.space[Number(element.dataset.index)];
      const name = row?.name ?? "";
      const own = Object.hasOwn(declared, name) ? declared[name] : undefined;
      const notes = [];
      if (own && !isSame(row, { ...own, name })) notes.push(`The code allows ${valuesText(own)}.`);
      if (this.marked.includes(name)) notes.push(AT_BOUND);
      const note = find(element, "[data-row-note]", HTMLElement);
      note.textContent = notes.join(" ");
      note.hidden = !notes.length;
    }
  }

  /**
   * Keep a range as it was typed, until the server has read it.
   * @param {number} index
   * @param {string} text
   */
  typeRange(index, text) {
    this.sheet.edit(({ search }) => {
      if (!search?.space) return;
      const { name, kind, range: _, ...others } = search.space[index];
      const rest = Object.entries(others).filter(([part]) => !RANGE_PARTS.includes(part));
      search.space[index] = { name, kind, range: text, ...Object.fromEntries(rest) };
    }, "field");
  }

  /**
   * Replace the texts that the server has read by their fields, unless they have changed since.
   * @param {RangeRead[]} ranges
   */
  accept(ranges) {
    const read = ranges.filter(({ pointer, text }) => this.sheet.get(`${pointer}/range`) === text);
    // A person who writes JSON keeps it as it is.
    if (!read.length || document.activeElement?.matches(".ef-text")) return;
    this.sheet.edit(({ search }) => {
      for (const { pointer, fields } of read) {
        const index = Number(pointer.slice(SPACE.length + 1));
        const { name, kind, range: _, ...others } = search?.space?.[index] ?? {};
        const known = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
        search?.space?.splice(index, 1, { name, kind, ...known, ...others });
      }
    }, "check");
    for (const { pointer } of read) this.showRange(document.getElementById(`at/spec${pointer}/range`));
  }

  /** @param {Event} event */
  onLeave(event) {
    this.showRange(closest(event, "[data-input=range]"));
  }

  /**
   * Show the range in the form's own writing, unless a person is typing it.
   * @param {HTMLElement | null} input
   */
  showRange(input) {
    const row = this.sheet.get(input?.dataset.pointer?.replace(/\/range$/, "") ?? "");
    const isTyping = input === document.activeElement && document.hasFocus();
    if (!(input instanceof HTMLInputElement) || !row || isTyping) return;
    input.value = rangeText(/** @type {Parameter} */ (row));
  }

  /**
   * Change the kind of a hyperparameter; the name, the conditions and a range are kept.
   * @param {number} index
   * @param {string} kind
   */
  changeKind(index, kind) {
    this.sheet.edit(({ search }) => {
      if (!search?.space) return;
      const old = search.space[index];
      const suggested = this.sheet.rangeOf(old.name ?? "");
      const begin = suggested?.kind === kind ? suggested : this.blank(kind, old);
      const { name, when } = old;
      search.space[index] = { name, ...begin, kind, ...(when === undefined ? {} : { when }) };
    });
    document.getElementById(`at/spec${SPACE}/${index}/kind`)?.focus();
  }

  /**
   * @param {string} kind
   * @param {Parameter} old
   * @returns {Parameter}
   */
  blank(kind, old) {
    if (kind === "int" || kind === "float") {
      if (old.range !== undefined) return { range: old.range };
      return { min: old.min ?? 1, max: old.max ?? 10 };
    }
    if (kind === "choice") return { values: old.values ?? (old.min === undefined ? [] : [old.min, old.max]) };
    return kind === "fixed" ? { value: old.default ?? old.min ?? old.values?.[0] ?? 1 } : {};
  }

  /**
   * Return a new row, with the condition of a template's argument, which other templates do not have.
   * @param {string} name
   * @returns {Parameter}
   */
  newRow(name) {
    const condition = this.sheet.conditionFor(name);
    const isChosen = this.sheet.space.some((row) => row?.name === "template");
    const only = condition?.name === "template" && isChosen;
    const when = only ? { when: { name: condition.name, in: condition.values } } : {};
    return { name, ...structuredClone(this.sheet.rangeOf(name) ?? FREE), ...when };
  }

  /** @param {number} index */
  addCondition(index) {
    const before = this.sheet.space.slice(0, index);
    const { name, values = [] } = this.sheet.conditionFor(this.sheet.space[index]?.name ?? "") ?? {};
    const parent = before.find((row) => row?.name === name) ?? before.at(-1);
    const fitting = parent?.name === name ? parent?.values?.filter((value) => values.includes(String(value))) : null;
    /** @type {Condition} */
    const condition = {
      name: parent?.name ?? "",
      in: fitting?.length ? fitting : [parent?.values?.[0] ?? parent?.min ?? parent?.value ?? true],
    };
    this.sheet.edit(() => {
      const row = this.sheet.space[index];
      row.when = row.when === undefined ? condition : [...conditionsOf(row), condition];
    });
  }

  /**
   * @param {number} index
   * @param {string} at
   */
  dropCondition(index, at) {
    this.sheet.edit(() => {
      const row = this.sheet.space[index];
      const left = conditionsOf(row).filter((_, i) => Array.isArray(row.when) && !at.endsWith(`/when/${i}`));
      if (left.length) row.when = left.length === 1 ? left[0] : left;
      else delete row.when;
    });
  }
}
