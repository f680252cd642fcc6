// Lists of rows that are added, removed and moved: search space, objectives, layout rules, precision overrides.

/** @import { Condition, Objective, Parameter, Rule } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { byId, closest, find, findAll } from "../../shared/elements.js";
import { isField, offer, read, show } from "./inputs.js";
import { CODE } from "./sheet.js";

const LISTS = {
  space: "/search/space",
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

/** The range of a hyperparameter that the dry build has not found, until a person changes it. */
const FREE = { kind: "float", min: 0, max: 1 };

/**
 * @param {string | undefined} name
 * @returns {name is Name}
 */
const isName = (name) => name !== undefined && name in LISTS;

/** @param {Parameter} row */
const conditionsOf = (row) => (row.when === undefined ? [] : [row.when].flat());

export class Rows {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    form.addEventListener("input", (event) => this.onInput(event));
    form.addEventListener("click", (event) => this.onClick(event));
    sheet.onChange((from) => {
      if (from !== "field") this.draw();
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
    else if (input.dataset.input === "kind" && isField(input)) input.value = String(value ?? "fixed");
    else if (input.dataset.offer !== "names") show(input, value ?? this.sheet.shown(place));
  }

  offerNames() {
    const taken = this.sheet.space.map((row) => row?.name);
    const free = this.sheet.names.filter((name) => !taken.includes(name));
    // A dry build may not find a hyperparameter that code declares for few values.
    byId("add-other", HTMLInputElement).hidden = this.sheet.templateName !== CODE;
    const add = byId("add-name", HTMLSelectElement);
    const wanted = add.value;
    offer(add, free);
    if ([...add.options].some((option) => option.value === wanted)) add.value = wanted;
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
      this.changeKind(Number(closest(event, "[data-row-of]")?.dataset.index), input.value);
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
    document.getElementById(`at/spec/search/space/${index}/kind`)?.focus();
  }

  /**
   * @param {string} kind
   * @param {Parameter} old
   * @returns {Parameter}
   */
  blank(kind, old) {
    if (kind === "int" || kind === "float") return { min: old.min ?? 1, max: old.max ?? 10 };
    if (kind === "choice") return { values: old.values ?? (old.min === undefined ? [] : [old.min, old.max]) };
    return kind === "fixed" ? { value: old.default ?? old.min ?? old.values?.[0] ?? 1 } : {};
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const button = closest(event, "button");
    if (!button) return;
    const { add } = button.dataset;
    if (isName(add)) this.add(add);
    const row = closest(event, "[data-row-of]");
    const name = row?.dataset.rowOf;
    if (!row || !isName(name)) return;
    const list = LISTS[name];
    const index = Number(row.dataset.index);
    if ("remove" in button.dataset) this.remove(name, index);
    if ("move" in button.dataset) this.move(name, index, Number(button.dataset.move));
    if ("conditionAdd" in button.dataset) this.addCondition(index);
    if ("unless" in button.dataset) this.dropCondition(index, closest(event, "[data-condition]")?.dataset.at ?? "");
    if ("dimension" in button.dataset) this.resize(`${list}/${index}/axes`, Number(button.dataset.dimension));
  }

  /** @param {Name} name */
  add(name) {
    const rows = this.list(name);
    const other = byId("add-other", HTMLInputElement);
    const chosen = byId("add-name", HTMLSelectElement).value;
    const hyperparameter = (!other.hidden && other.value.trim()) || (chosen && JSON.parse(chosen));
    if (name === "space" && !hyperparameter) return;
    const range = this.sheet.rangeOf(hyperparameter) ?? (other.hidden ? undefined : FREE);
    const row =
      name === "space"
        ? { name: hyperparameter, ...structuredClone(range), ...this.only(hyperparameter) }
        : NEW[name](this.sheet);
    if (name === "space") other.value = "";
    if (name === "objectives" && !rows.length) this.leadWith(/** @type {Objective} */ (row));
    else this.sheet.put(LISTS[name], [...rows, row], "rows");
    const made = document.getElementById(`at/spec${LISTS[name]}/${this.list(name).length - 1}`);
    if (made) findAll(made, "input, select", HTMLElement)[0]?.focus();
  }

  /**
   * Return the condition of a template's argument, which other templates do not have.
   * @param {string} name
   * @returns {{ when?: Condition }}
   */
  only(name) {
    const condition = this.sheet.conditionFor(name);
    const isChosen = this.sheet.space.some((row) => row?.name === "template");
    return condition?.name === "template" && isChosen ? { when: { name: condition.name, in: condition.values } } : {};
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
