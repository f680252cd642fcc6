// The choices for each column of a table. The server makes the rows: it knows the choices for each type.

/** @import { Fields } from "./fields.js" */
/** @import { Sheet } from "./sheet.js" */
import { fetchPart } from "../../shared/connection/part.js";
import { answers } from "../../shared/connection/server.js";
import { isLoggedIn } from "../../shared/connection/session.js";
import { closest, find, findAll } from "../../shared/elements.js";
import { read } from "./inputs.js";
import { get, put } from "./pointer.js";

const WAIT = 250;
const LONGEST_ADDRESS = 4000;
const PLACE = "/data/preprocessing";

export class Preprocessing {
  /** @type {AbortController | null} */
  running = null;
  timer = 0;
  /** The address of the rows that are shown. */
  shown = "";

  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   * @param {Fields} fields
   */
  constructor(form, sheet, fields) {
    this.place = find(form, "[data-preprocessing]", HTMLElement);
    this.search = find(this.place, "[data-find-columns]", HTMLInputElement);
    this.rows = find(this.place, "[data-columns]", HTMLElement);
    this.sheet = sheet;
    this.fields = fields;
    this.place.addEventListener("input", (event) => this.onInput(event));
    // Names are typed, so they are complete only after the last key.
    form.addEventListener("change", (event) => this.onRoles(closest(event, "[data-pointer]")?.dataset.pointer));
    sheet.onChange(() => this.follow());
    // While the server was gone or the session had ended, the rows were not loaded.
    for (const type of ["ty:server", "ty:session"])
      document.addEventListener(type, () => {
        if (answers() && isLoggedIn()) this.follow(0);
      });
    this.follow(0);
  }

  /** Load the rows if they depend on something that has changed, and show the fields that the choices need. */
  follow(wait = WAIT) {
    this.showNeeded();
    if (this.address() === this.shown) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), wait);
  }

  address() {
    const { dataset = "", dataset_version: number, target, features } = this.sheet.spec.data ?? {};
    const query = new URLSearchParams({ dataset: String(dataset), q: this.search.value });
    if (number !== undefined) query.set("version", String(number));
    if (target) query.set("target", String(target));
    const short = `${this.place.dataset.address}?${query}`;
    for (const name of Array.isArray(features) ? features : []) query.append("feature", String(name));
    const address = `${this.place.dataset.address}?${query}`;
    // Thousands of names do not fit into an address: then the features of the data set are shown.
    return address.length > LONGEST_ADDRESS ? short : address;
  }

  async load() {
    const address = this.address();
    this.running?.abort();
    this.running = new AbortController();
    try {
      const response = await fetchPart(address, { signal: this.running.signal });
      if (!response.ok) throw new Error(String(response.status));
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      this.rows.replaceChildren(...page.body.childNodes);
      this.shown = address;
      this.fields.follow("start");
      this.showNeeded();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      this.shown = "";
      this.rows.textContent = "The columns could not be loaded; change the search to try again.";
    }
  }

  /** @param {Event} event */
  onInput(event) {
    if (event.target === this.search) this.follow();
    const input = closest(event, "[data-pointer]");
    const row = closest(event, "[data-column]")?.dataset.column;
    const pointer = input?.dataset.pointer;
    if (!input || !pointer || row === undefined) return;
    const name = pointer.slice(row.length + 1);
    this.sheet.edit((spec) => {
      put(spec, pointer, read(input));
      const options = get(spec, row);
      if (options && typeof options === "object") this.drop(/** @type {Record<string, unknown>} */ (options), name);
      if (Object.keys(get(spec, row) ?? {}).length === 0) put(spec, row, undefined);
      if (Object.keys(get(spec, PLACE) ?? {}).length === 0) put(spec, PLACE, undefined);
    }, "field");
    // The fields of choices that are no longer needed are empty now.
    for (const other of findAll(this.rows, "[data-pointer]", HTMLElement))
      if (other !== input && other.dataset.pointer?.startsWith(`${row}/`)) this.fields.showValue(other);
  }

  /**
   * Drop the options of columns that are no longer features, which are not shown and would be refused.
   * @param {string | undefined} pointer
   */
  onRoles(pointer) {
    if (pointer !== "/data/features" && pointer !== "/data/target") return;
    const { target, features } = this.sheet.spec.data ?? {};
    const chosen = Array.isArray(features) && features.length > 0 ? features : null;
    const isLeftOut = (/** @type {string} */ name) => name === target || (chosen !== null && !chosen.includes(name));
    const names = Object.keys(this.sheet.get(PLACE) ?? {}).filter(isLeftOut);
    if (names.length === 0) return;
    this.sheet.edit((spec) => {
      const options = /** @type {Record<string, unknown>} */ (get(spec, PLACE) ?? {});
      for (const name of names) delete options[name];
      if (Object.keys(options).length === 0) put(spec, PLACE, undefined);
    }, "field");
  }

  /**
   * Drop the options that do not belong to a new choice.
   * @param {Record<string, unknown>} options
   * @param {string} changed
   */
  drop(options, changed) {
    if (changed === "encode")
      for (const other of ["impute", "constant", "indicator", "buckets", "size", "length"]) delete options[other];
    if (changed === "impute" && options.impute === "constant") options.constant ??= 0;
    if (changed === "impute" && options.impute !== "constant") delete options.constant;
  }

  showNeeded() {
    for (const row of findAll(this.rows, "[data-column]", HTMLElement)) {
      const options = /** @type {Record<string, unknown>} */ (this.sheet.get(row.dataset.column ?? "") ?? {});
      const encode = String(options.encode ?? row.dataset.proposed ?? "");
      for (const field of findAll(row, "[data-encoded]", HTMLElement)) {
        const { encoded = "", imputed } = field.dataset;
        const suits = encoded === "" ? encode === "" : encoded.split(" ").includes(encode);
        field.hidden = !suits || (imputed !== undefined && options.impute !== imputed);
      }
    }
  }
}
