// A switch beside each field of the model and the training: its value is chosen by the search, and the field shows the range.

/** @import { Fields } from "./fields.js" */
/** @import { Sheet } from "./sheet.js" */
/** @import { SpaceTable } from "./space-table.js" */
import { closest, find } from "../../shared/elements.js";
import { valuesText } from "./range-text.js";
import { CODE, FIT } from "./sheet.js";
import { SPACE } from "./space-table.js";

const PLACE = /^\/(model\/args|fit)\//;

export class SearchSwitches {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   * @param {Fields} fields
   * @param {SpaceTable} space
   */
  constructor(form, sheet, fields, space) {
    this.form = form;
    this.sheet = sheet;
    this.fields = fields;
    this.space = space;
    form.addEventListener("input", (event) => this.onInput(event));
    sheet.onChange(() => this.draw());
    this.draw();
  }

  /**
   * Return the name that a field's hyperparameter has.
   * @param {string} pointer
   */
  nameOf(pointer) {
    const name = pointer.replace(PLACE, "");
    return this.sheet.templateName === CODE && pointer.startsWith("/fit/") ? `${FIT}${name}` : name;
  }

  draw() {
    const names = new Set(this.sheet.names);
    const places = new Map(this.sheet.space.map((row, index) => [row?.name, index]));
    for (const input of this.fields.inputs) {
      const { pointer = "" } = input.dataset;
      const field = input.closest("[data-field]");
      if (!PLACE.test(pointer) || !(field instanceof HTMLElement)) continue;
      const name = this.nameOf(pointer);
      const place = places.get(name);
      if (place === undefined && !names.has(name)) this.remove(field);
      else this.show(field, name, place);
    }
  }

  /** @param {HTMLElement} field */
  remove(field) {
    for (const part of field.querySelectorAll(".es-switch, .es-searched")) part.remove();
    field.classList.remove("es-searchable", "is-searched");
  }

  /**
   * @param {HTMLElement} field
   * @param {string} name
   * @param {number | undefined} place
   */
  show(field, name, place) {
    if (!field.querySelector("[data-search-of]")) this.add(field);
    const box = find(field, "[data-search-of]", HTMLInputElement);
    box.dataset.searchOf = name;
    box.checked = place !== undefined;
    field.classList.toggle("is-searched", box.checked);
    const link = find(field, ".es-searched", HTMLAnchorElement);
    link.hidden = !box.checked;
    if (place === undefined) return;
    const row = this.sheet.space[place];
    link.dataset.goto = `/spec${SPACE}/${place}`;
    link.textContent = valuesText(row);
    link.title = `Searched: ${valuesText(row)}`;
  }

  /** @param {HTMLElement} field */
  add(field) {
    const label = field.querySelector(".form-label, .form-check-label")?.textContent?.trim() ?? "";
    const [box, link] = ["search-switch", "searched"].map((part) => {
      const template = find(document, `template[data-part="${part}"]`, HTMLTemplateElement);
      return find(document.importNode(template.content, true), "*", HTMLElement);
    });
    find(box, "input", HTMLInputElement).title = `Search ${label}`;
    link.setAttribute("aria-label", `Range of ${label}`);
    link.hidden = true;
    field.classList.add("es-searchable");
    const hint = field.querySelector(".form-hint");
    field.insertBefore(link, hint);
    field.append(box);
  }

  /** @param {Event} event */
  onInput(event) {
    const box = closest(event, "[data-search-of]");
    if (!(box instanceof HTMLInputElement)) return;
    const name = box.dataset.searchOf ?? "";
    this.sheet.edit((spec) => {
      if (!box.checked) {
        if (spec.search) spec.search.space = this.sheet.space.filter((row) => row?.name !== name);
        return;
      }
      const toggle = find(this.form, '[data-toggle="/search"]', HTMLInputElement);
      const search = spec.search ?? { ...this.fields.initial(toggle), space: [] };
      search.space = [...(search.space ?? []), this.space.newRow(name)];
      spec.search = search;
    });
  }
}
