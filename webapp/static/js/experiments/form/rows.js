// Lists of rows that are added, removed and moved: search space, objectives, layout rules, precision overrides.

/** @import { Objective, Parameter, Rule } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { byId, closest, find, findAll } from "../../shared/elements.js";
import { isField, offer, read, show } from "./inputs.js";
import { rangeText } from "./range-text.js";
import { conditionsOf, SPACE, SpaceTable } from "./space-table.js";

const LISTS = {
  space: SPACE,
  objectives: "/search/objectives",
  layout: "/mesh/layout",
  overrides: "/precision/overrides",
};
/** The end of the pointer of an objective's metric. */
const OBJECTIVE = /^(\/search\/objectives\/\d+)\/metric$/;
/** @typedef {keyof typeof LISTS} Name */
/** @typedef {Parameter & Objective & Rule} Row */

/** @type {Record<"layout" | "objectives" | "overrides", (sheet: Sheet) => Row>} */
const NEW = {
  layout: (sheet) => ({ match: ".*/kernel", axes: [null, sheet.spec.mesh?.axis_names?.at(-1) ?? null] }),
  objectives: (sheet) => {
    const metric = sheet.watched.find((name) => !sheet.objectives.includes(name)) ?? "val_loss";
    return { metric, direction: sheet.directionOf(metric) };
  },
  overrides: () => ({ match: "", policy: "float32" }),
};

/**
 * @param {string | undefined} name
 * @returns {name is Name}
 */
const isName = (name) => name !== undefined && name in LISTS;

export class Rows {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   * @param {SpaceTable} space
   */
  constructor(form, sheet, space) {
    this.form = form;
    this.sheet = sheet;
    this.space = space;
    form.addEventListener("input", (event) => this.onInput(event));
    form.addEventListener("click", (event) => this.onClick(event));
    sheet.onChange((from) => {
      if (from !== "field" && from !== "check") this.draw();
      else this.offerNames();
    });
    this.draw();
  }

  /**
   * @param {Name} name
   * @returns {Row[]}
   */
  list(name) {
    const rows = this.sheet.get(LISTS[name]);
    return Array.isArray(rows) ? rows : [];
  }

  draw() {
    const focused = document.activeElement?.id;
    for (const name of Object.keys(LISTS)) if (isName(name)) this.drawList(name);
    this.offerNames();
    this.space.showNotes();
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
  }

  /** @param {Name} name */
  drawList(name) {
    const place = find(this.form, `[data-rows="${name}"]`, HTMLElement);
    const rows = this.list(name).map((row, index) => this.drawRow(name, row ?? {}, index));
    place.replaceChildren(...rows);
  }

  /**
   * @param {Name} name
   * @param {Row} row
   * @param {number} index
   */
  drawRow(name, row, index) {
    const tag = name === "space" ? `space:${row.kind}` : name;
    const [template] = [tag, "space:fixed"].flatMap((row) =>
      findAll(document, `template[data-row="${row}"]`, HTMLTemplateElement),
    );
    const element = find(document.importNode(template.content, true), "*", HTMLElement);
    const pointer = `${LISTS[name]}/${index}`;
    element.dataset.at = pointer;
    element.dataset.index = String(index);
    element.id = `at/spec${pointer}`;
    element.tabIndex = -1;
    const title = name === "space" ? "Hyperparameter" : name === "objectives" ? "Objective" : "Rule";
    find(element, "legend", HTMLElement).textContent = `${title} ${index + 1}`;
    if (name === "space") this.drawConditions(element, row, pointer);
    for (const input of findAll(element, "[data-pointer]", HTMLElement)) this.bind(input, pointer, row);
    if (name === "space") this.space.fill(element, row, index);
    find(element, '[data-move="-1"]', HTMLButtonElement).disabled = index === 0;
    find(element, '[data-move="1"]', HTMLButtonElement).disabled = index === this.list(name).length - 1;
    return element;
  }

  /**
   * Give a cloned input its place in the spec, its label and its value.
   * @param {HTMLElement} input
   * @param {string} pointer
   * @param {object} row
   */
  bind(input, pointer, row) {
    const relative = input.dataset.pointer ?? "";
    if (relative.startsWith("/")) return;
    const value = /** @type {Record<string, unknown>} */ (row)[relative];
    const place = `${pointer}/${relative}`;
    input.dataset.pointer = place;
    input.id = `at/spec${place}`;
    input.closest("[data-field]")?.querySelector("label")?.setAttribute("for", input.id);
    if (input.dataset.input === "measure" && input instanceof HTMLSelectElement) offer(input, this.sheet.watched);
    if (input.dataset.input === "axes") this.drawAxes(input, Array.isArray(value) ? value : []);
    else if (input.dataset.input === "range" && isField(input)) input.value = rangeText(row);
    else if (input.dataset.input === "kind" && isField(input)) input.value = String(value ?? "fixed");
    else if (input.dataset.offer !== "names") show(input, value ?? this.sheet.shown(place));
  }

  offerNames() {
    const taken = this.sheet.space.map((row) => row?.name);
    const free = this.sheet.names.filter((name) => !taken.includes(name));
    for (const select of findAll(this.form, '[data-row-of] [data-offer="names"]', HTMLSelectElement)) {
      const own = this.sheet.get(select.dataset.pointer ?? "");
      offer(
        select,
        this.sheet.names.filter((name) => name === own || free.includes(name)),
      );
      show(select, own);
    }
  }

  /**
   * @param {HTMLElement} place
   * @param {(string | null)[]} axes
   */
  drawAxes(place, axes) {
    const names = this.sheet.spec.mesh?.axis_names ?? [];
    const selects = axes.map((axis, i) => {
      const select = Object.assign(document.createElement("select"), {
        className: "form-select",
        id: `${place.id}/${i}`,
      });
      select.dataset.pointer = `${place.dataset.pointer}/${i}`;
      select.dataset.input = "select";
      select.setAttribute("aria-label", `Axis of dimension ${i}`);
      offer(select, [null, ...names], { label: (name) => name ?? "whole" });
      show(select, axis);
      return select;
    });
    place.replaceChildren(
      ...selects,
      this.step("−", "One dimension less", -1),
      this.step("+", "One dimension more", 1),
    );
  }

  /**
   * @param {string} sign
   * @param {string} label
   * @param {number} by
   */
  step(sign, label, by) {
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "btn btn-sm",
      textContent: sign,
    });
    button.dataset.dimension = String(by);
    button.setAttribute("aria-label", label);
    return button;
  }

  /**
   * @param {HTMLElement} element
   * @param {Parameter} row
   * @param {string} pointer
   */
  drawConditions(element, row, pointer) {
    const place = find(element, "[data-when]", HTMLElement);
    const template = find(document, 'template[data-row="condition"]', HTMLTemplateElement);
    conditionsOf(row).forEach((condition, i) => {
      const part = find(document.importNode(template.content, true), "*", HTMLElement);
      const own = Array.isArray(row.when) ? `${pointer}/when/${i}` : `${pointer}/when`;
      part.dataset.at = own;
      const index = Number(element.dataset.index);
      const parents = this.sheet.space
        .slice(0, index)
        .map((other) => other?.name)
        .filter(Boolean);
      offer(find(part, '[data-pointer="name"]', HTMLSelectElement), parents);
      for (const input of findAll(part, "[data-pointer]", HTMLElement)) this.bind(input, own, condition ?? {});
      place.append(part);
    });
  }

  /** @param {Event} event */
  onInput(event) {
    const input = closest(event, "[data-row-of] [data-pointer]");
    if (!input?.dataset.pointer) return;
    if (input.dataset.input === "kind" && isField(input))
      this.space.changeKind(Number(closest(event, "[data-row-of]")?.dataset.index), input.value);
    else if (input.dataset.input === "range" && isField(input))
      this.space.typeRange(Number(closest(event, "[data-row-of]")?.dataset.index), input.value);
    else if (OBJECTIVE.test(input.dataset.pointer)) this.changeObjective(input.dataset.pointer, String(read(input)));
    else this.sheet.put(input.dataset.pointer, read(input), input.dataset.offer === "names" ? "rows" : "field");
  }

  /**
   * @param {string} pointer
   * @param {string} metric
   */
  changeObjective(pointer, metric) {
    const direction = this.sheet.directionOf(metric);
    this.sheet.put(pointer.replace(OBJECTIVE, "$1"), { metric, ...(direction && { direction }) }, "rows");
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const button = closest(event, "button");
    if (!button) return;
    const { add } = button.dataset;
    if (isName(add) && add !== "space") this.add(add);
    const row = closest(event, "[data-row-of]");
    const name = row?.dataset.rowOf;
    if (!row || !isName(name)) return;
    const list = LISTS[name];
    const index = Number(row.dataset.index);
    if (name === "space") this.space.onClick(button, row);
    if ("remove" in button.dataset) this.remove(name, index);
    if ("move" in button.dataset) this.move(name, index, Number(button.dataset.move));
    if ("conditionAdd" in button.dataset) this.space.addCondition(index);
    if ("unless" in button.dataset)
      this.space.dropCondition(index, closest(event, "[data-condition]")?.dataset.at ?? "");
    if ("dimension" in button.dataset) this.resize(`${list}/${index}/axes`, Number(button.dataset.dimension));
  }

  /** @param {"layout" | "objectives" | "overrides"} name */
  add(name) {
    const rows = this.list(name);
    const row = NEW[name](this.sheet);
    if (name === "objectives" && !rows.length) this.leadWith(/** @type {Objective} */ (row));
    else this.sheet.put(LISTS[name], [...rows, row], "rows");
    this.focusLast(name, "input, select");
  }

  /** @param {string} hyperparameter */
  addHyperparameter(hyperparameter) {
    this.sheet.put(SPACE, [...this.list("space"), this.space.newRow(hyperparameter)], "rows");
    this.focusLast("space", ".es-range input, [data-more-of]");
  }

  /**
   * @param {Name} name
   * @param {string} selector
   */
  focusLast(name, selector) {
    const made = document.getElementById(`at/spec${LISTS[name]}/${this.list(name).length - 1}`);
    if (made) findAll(made, selector, HTMLElement)[0]?.focus();
  }

  /**
   * Make the only objective the first of two: a spec has either one or a list.
   * @param {Objective} second
   */
  leadWith(second) {
    this.sheet.edit((spec) => {
      const { objective = { metric: "val_loss", direction: "min" }, ...search } = spec.search ?? {};
      spec.search = { ...search, objectives: [objective, second] };
    });
  }

  /**
   * @param {Name} name
   * @param {number} index
   */
  remove(name, index) {
    const list = LISTS[name];
    const left = this.list(name).toSpliced(index, 1);
    if (name === "objectives" && left.length < 2) {
      this.sheet.edit((spec) => {
        const { objectives, ...search } = spec.search ?? {};
        spec.search = { ...search, objective: left[0] };
      });
      find(document, '[data-add="objectives"]', HTMLElement).focus();
      return;
    }
    this.sheet.put(list, left, "rows");
    const before = document.getElementById(`at/spec${list}/${Math.max(index - 1, 0)}`);
    (before ?? document.getElementById(`at/spec${list}`))?.focus();
  }

  /**
   * @param {Name} name
   * @param {number} index
   * @param {number} by
   */
  move(name, index, by) {
    const list = LISTS[name];
    const rows = [...this.list(name)];
    [rows[index], rows[index + by]] = [rows[index + by], rows[index]];
    this.sheet.put(list, rows, "rows");
    const row = byId(`at/spec${list}/${index + by}`, HTMLElement);
    const [button] = [`[data-move="${by}"]:not(:disabled)`, "[data-move]:not(:disabled)"].flatMap((selector) =>
      findAll(row, selector, HTMLElement),
    );
    button?.focus();
  }

  /**
   * @param {string} pointer
   * @param {number} by
   */
  resize(pointer, by) {
    const held = this.sheet.get(pointer);
    const axes = Array.isArray(held) ? held : [];
    this.sheet.put(pointer, by > 0 ? [null, ...axes] : axes.slice(1), "rows");
  }
}
