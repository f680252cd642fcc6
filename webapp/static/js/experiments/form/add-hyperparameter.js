// The last row of the search space: typing a name lists the hyperparameters in groups, and Enter adds one.

/** @import { Sheet } from "./sheet.js" */
import { byId, closest, findAll } from "../../shared/elements.js";
import { valuesText } from "./range-text.js";
import { CODE, FIT } from "./sheet.js";

/** The groups of the fields of the training, by the start of their names. @type {Record<string, string>} */
const PARTS = {
  augmentation: "Augmentation",
  ema: "Average of the weights",
  optimizer_args: "Optimizer",
  schedule: "Learning-rate schedule",
};

/**
 * Return the group of a hyperparameter in the list.
 * @param {Sheet} sheet
 * @param {string} name
 */
function groupOf(sheet, name) {
  const isCode = sheet.templateName === CODE;
  if (isCode && !name.startsWith(FIT)) return "Own code";
  const [first, argument] = (isCode ? name.slice(FIT.length) : name).split("/");
  if (argument !== undefined) {
    const label = Object.hasOwn(PARTS, first) ? PARTS[first] : undefined;
    return label ?? sheet.known.templates.find((one) => one.name === first)?.label ?? "Training";
  }
  return sheet.known.fitFields.includes(first) ? "Training" : "Model";
}

export class AddHyperparameter {
  /**
   * @param {Sheet} sheet
   * @param {(name: string) => void} add
   */
  constructor(sheet, add) {
    this.sheet = sheet;
    this.add = add;
    this.input = byId("add-name", HTMLInputElement);
    this.list = byId("add-names", HTMLElement);
    /** The chosen option. */
    this.here = 0;
    this.input.addEventListener("input", () => this.open());
    this.input.addEventListener("click", () => this.open());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.onKey(event));
    // Before the input loses the focus, which closes the list.
    this.list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const name = closest(event, "[role=option]")?.dataset.name;
      if (name !== undefined) this.pick(name);
    });
  }

  get options() {
    return findAll(this.list, "[role=option]", HTMLElement);
  }

  /** The names that contain the typed text, by group. Names that begin with it are first in theirs. */
  get found() {
    const typed = this.input.value.trim().toLowerCase();
    const taken = this.sheet.space.map((row) => row?.name);
    const names = this.sheet.names.filter((name) => !taken.includes(name) && name.toLowerCase().includes(typed));
    const sorted = names.toSorted((a, b) => Number(b.startsWith(typed)) - Number(a.startsWith(typed)));
    return Map.groupBy(sorted, (name) => groupOf(this.sheet, name));
  }

  open() {
    const typed = this.input.value.trim();
    const parts = [...this.found].map(([label, names]) => this.group(label, names));
    const isTaken = this.sheet.space.some((row) => row?.name === typed);
    const isKnown = this.sheet.names.includes(typed);
    if (this.sheet.templateName === CODE && typed && !isTaken && !isKnown)
      parts.push(this.group("Not found by the dry build", [typed]));
    if (!parts.length) {
      const words = isTaken ? `${typed} is in the table already.` : "No hyperparameter of this model has such a name.";
      parts.push(Object.assign(document.createElement("p"), { textContent: words }));
    }
    this.list.replaceChildren(...parts);
    this.options.forEach((option, index) => {
      option.id = `add-name-${index}`;
    });
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.mark(0);
  }

  /**
   * @param {string} label
   * @param {string[]} names
   */
  group(label, names) {
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    const title = Object.assign(document.createElement("b"), { textContent: label });
    title.setAttribute("aria-hidden", "true");
    const options = names.map((name) => {
      const option = Object.assign(document.createElement("div"), { textContent: name });
      const range = this.sheet.rangeOf(name);
      option.setAttribute("role", "option");
      option.dataset.name = name;
      option.append(Object.assign(document.createElement("span"), { textContent: range ? valuesText(range) : "" }));
      return option;
    });
    group.append(title, ...options);
    return group;
  }

  /** @param {number} index */
  mark(index) {
    const { options } = this;
    this.here = Math.min(Math.max(index, 0), options.length - 1);
    for (const option of options) option.setAttribute("aria-selected", String(option === options[this.here]));
    const chosen = options[this.here];
    if (chosen) this.input.setAttribute("aria-activedescendant", chosen.id);
    else this.input.removeAttribute("aria-activedescendant");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (steps && !event.altKey) {
      event.preventDefault();
      if (this.list.hidden) this.open();
      else this.mark(this.here + steps);
    } else if (event.key === "Escape" && !this.list.hidden) {
      event.stopPropagation();
      this.close();
    } else if (event.key === "Enter") {
      event.preventDefault(); // it would submit the form
      if (this.list.hidden) this.open();
      else if (this.options[this.here]?.dataset.name) this.pick(this.options[this.here].dataset.name ?? "");
    }
  }

  /** @param {string} name */
  pick(name) {
    this.input.value = "";
    this.close();
    this.add(name);
  }
}
