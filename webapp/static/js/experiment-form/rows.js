// Lists of rows: the search space, layout rules, precision overrides. Added, removed and moved in place.
import { offer, read, show } from "./inputs.js";

const LISTS = {
  space: "/search/space",
  objectives: "/search/objectives",
  layout: "/mesh/layout",
  overrides: "/precision/overrides",
};
const NEW = {
  layout: (sheet) => ({ match: ".*/kernel", axes: [null, sheet.get("/mesh/axis_names")?.at(-1) ?? null] }),
  objectives: (sheet) => ({
    metric:
      sheet.watched.find(
        (name) =>
          !(sheet.get("/search/objectives") ?? [sheet.get("/search/objective")]).some((one) => one?.metric === name),
      ) ?? "val_loss",
    direction: "min",
  }),
  overrides: () => ({ match: "", policy: "float32" }),
};

export class Rows {
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    form.addEventListener("input", (event) => this.onInput(event));
    form.addEventListener("click", (event) => this.onClick(event));
    sheet.addEventListener("change", (event) => {
      if (event.detail.from !== "field") this.draw();
      else this.offerNames();
    });
    this.draw();
  }

  list(name) {
    const rows = this.sheet.get(LISTS[name]);
    return Array.isArray(rows) ? rows : [];
  }

  draw() {
    const focused = document.activeElement?.id;
    for (const name of Object.keys(LISTS)) this.drawList(name);
    this.offerNames();
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
  }

  drawList(name) {
    const place = this.form.querySelector(`[data-rows="${name}"]`);
    const rows = this.list(name).map((row, index) => this.drawRow(name, row ?? {}, index));
    place.replaceChildren(...rows.filter(Boolean));
  }

  drawRow(name, row, index) {
    const tag = name === "space" ? `space:${row.kind}` : name;
    const template =
      document.querySelector(`template[data-row="${tag}"]`) ??
      document.querySelector('template[data-row="space:fixed"]');
    const element = template.content.firstElementChild.cloneNode(true);
    const pointer = `${LISTS[name]}/${index}`;
    element.dataset.at = pointer;
    element.dataset.index = index;
    element.id = `at/spec${pointer}`;
    element.tabIndex = -1;
    element.querySelector("legend").textContent =
      `${{ space: "Hyperparameter", objectives: "Objective" }[name] ?? "Rule"} ${index + 1}`;
    if (name === "space") this.drawConditions(element, row, pointer);
    for (const input of element.querySelectorAll("[data-pointer]")) this.bind(input, pointer, row);
    element.querySelector('[data-move="-1"]').disabled = index === 0;
    element.querySelector('[data-move="1"]').disabled = index === this.list(name).length - 1;
    return element;
  }

  /** Give a cloned input its place in the spec, its label and its value. */
  bind(input, pointer, row) {
    const relative = input.dataset.pointer;
    if (relative.startsWith("/")) return;
    const value = row[relative];
    input.dataset.pointer = `${pointer}/${relative}`;
    input.id = `at/spec${pointer}/${relative}`;
    input.closest("[data-field]")?.querySelector("label")?.setAttribute("for", input.id);
    if (input.dataset.input === "measure") offer(input, this.sheet.watched);
    if (input.dataset.input === "axes") this.drawAxes(input, Array.isArray(value) ? value : []);
    else if (input.dataset.input === "kind") input.value = value ?? "fixed";
    else if (input.dataset.offer !== "names") show(input, value);
  }

  offerNames() {
    const taken = this.sheet.space.map((row) => row?.name);
    const free = this.sheet.names.filter((name) => !taken.includes(name));
    const add = document.getElementById("add-name");
    const wanted = add.value;
    offer(add, free);
    if ([...add.options].some((option) => option.value === wanted)) add.value = wanted;
    for (const select of this.form.querySelectorAll('[data-row-of] [data-offer="names"]')) {
      const own = this.sheet.get(select.dataset.pointer);
      offer(
        select,
        this.sheet.names.filter((name) => name === own || free.includes(name)),
      );
      show(select, own);
    }
  }

  drawAxes(place, axes) {
    const names = this.sheet.get("/mesh/axis_names") ?? [];
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

  step(sign, label, by) {
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "btn btn-sm",
      textContent: sign,
    });
    button.dataset.dimension = by;
    button.setAttribute("aria-label", label);
    return button;
  }

  drawConditions(element, row, pointer) {
    const place = element.querySelector("[data-when]");
    const all = row.when === undefined ? [] : [row.when].flat();
    const template = document.querySelector('template[data-row="condition"]');
    all.forEach((condition, i) => {
      const part = template.content.firstElementChild.cloneNode(true);
      const own = Array.isArray(row.when) ? `${pointer}/when/${i}` : `${pointer}/when`;
      part.dataset.at = own;
      const index = Number(element.dataset.index);
      const parents = this.sheet.space
        .slice(0, index)
        .map((other) => other?.name)
        .filter(Boolean);
      offer(part.querySelector('[data-pointer="name"]'), parents);
      for (const input of part.querySelectorAll("[data-pointer]")) this.bind(input, own, condition ?? {});
      place.append(part);
    });
  }

  onInput(event) {
    const input = event.target.closest("[data-row-of] [data-pointer]");
    if (!input) return;
    if (input.dataset.input === "kind") this.changeKind(input);
    else this.sheet.put(input.dataset.pointer, read(input), input.dataset.offer === "names" ? "rows" : "field");
  }

  /** Another kind keeps what both have: the name, the conditions, a range. */
  changeKind(input) {
    const index = Number(input.closest("[data-row-of]").dataset.index);
    const kind = input.value;
    this.sheet.edit((spec) => {
      const old = spec.search.space[index];
      const suggested = this.sheet.rangeOf(old.name);
      const begin = suggested?.kind === kind ? suggested : this.blank(kind, old);
      const { name, when } = old;
      spec.search.space[index] = { name, ...begin, kind, ...(when === undefined ? {} : { when }) };
    });
    document.getElementById(`at/spec/search/space/${index}/kind`)?.focus();
  }

  blank(kind, old) {
    if (kind === "int" || kind === "float") return { min: old.min ?? 1, max: old.max ?? 10 };
    if (kind === "choice") return { values: old.values ?? (old.min === undefined ? [] : [old.min, old.max]) };
    return kind === "fixed" ? { value: old.default ?? old.min ?? old.values?.[0] ?? 1 } : {};
  }

  onClick(event) {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.add in LISTS) this.add(button.dataset.add);
    const row = button.closest("[data-row-of]");
    if (!row || !(row.dataset.rowOf in LISTS)) return;
    const list = LISTS[row.dataset.rowOf];
    const index = Number(row.dataset.index);
    if ("remove" in button.dataset) this.remove(list, index);
    if ("move" in button.dataset) this.move(list, index, Number(button.dataset.move));
    if ("conditionAdd" in button.dataset) this.addCondition(index);
    if ("unless" in button.dataset) this.dropCondition(index, button.closest("[data-condition]").dataset.at);
    if ("dimension" in button.dataset) this.resize(`${list}/${index}/axes`, Number(button.dataset.dimension));
  }

  add(name) {
    const rows = this.list(name);
    const chosen = document.getElementById("add-name").value;
    if (name === "space" && !chosen) return;
    const hyperparameter = chosen && JSON.parse(chosen);
    const row =
      name === "space"
        ? { name: hyperparameter, ...structuredClone(this.sheet.rangeOf(hyperparameter)) }
        : NEW[name](this.sheet);
    if (name === "objectives" && !rows.length) this.leadWith(row);
    else this.sheet.put(LISTS[name], [...rows, row], "rows");
    const made = document.getElementById(`at/spec${LISTS[name]}/${this.list(name).length - 1}`);
    made?.querySelector("input, select")?.focus();
  }

  /** The objective so far becomes the first of two: a spec names one or several, not both. */
  leadWith(row) {
    this.sheet.edit((spec) => {
      spec.search.objectives = [spec.search.objective ?? { metric: "val_loss", direction: "min" }, row];
      delete spec.search.objective;
    });
  }

  remove(list, index) {
    const left = this.sheet.get(list).toSpliced(index, 1);
    if (list === LISTS.objectives && left.length < 2) {
      this.sheet.edit((spec) => {
        [spec.search.objective] = left;
        delete spec.search.objectives;
      });
      document.querySelector('[data-add="objectives"]').focus();
      return;
    }
    this.sheet.put(list, left, "rows");
    (
      document.getElementById(`at/spec${list}/${Math.max(index - 1, 0)}`) ?? document.getElementById(`at/spec${list}`)
    )?.focus();
  }

  move(list, index, by) {
    const rows = [...this.sheet.get(list)];
    [rows[index], rows[index + by]] = [rows[index + by], rows[index]];
    this.sheet.put(list, rows, "rows");
    const row = document.getElementById(`at/spec${list}/${index + by}`);
    (
      row?.querySelector(`[data-move="${by}"]:not(:disabled)`) ?? row?.querySelector("[data-move]:not(:disabled)")
    )?.focus();
  }

  addCondition(index) {
    const before = this.sheet.space.slice(0, index);
    const { name, values } = this.sheet.takers(this.sheet.space[index]?.name ?? "") ?? {};
    const parent = before.find((row) => row?.name === name) ?? before.at(-1);
    const fitting = parent?.name === name ? parent?.values?.filter((value) => values.includes(value)) : null;
    const condition = { name: parent?.name ?? "", in: fitting?.length ? fitting : [parent?.values?.[0] ?? true] };
    this.sheet.edit((spec) => {
      const row = spec.search.space[index];
      row.when = row.when === undefined ? condition : [...[row.when].flat(), condition];
    });
  }

  dropCondition(index, at) {
    this.sheet.edit((spec) => {
      const row = spec.search.space[index];
      const left = [row.when].flat().filter((_, i) => Array.isArray(row.when) && !at.endsWith(`/when/${i}`));
      if (left.length) row.when = left.length === 1 ? left[0] : left;
      else delete row.when;
    });
  }

  resize(pointer, by) {
    const axes = this.sheet.get(pointer) ?? [];
    this.sheet.put(pointer, by > 0 ? [null, ...axes] : axes.slice(1), "rows");
  }
}
