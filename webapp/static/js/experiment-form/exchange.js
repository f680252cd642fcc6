// Search spaces of other tools. An import is shown before it is accepted and can be undone; an export is a file.

/** @import { Problem, Search, Spec } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { byId, find } from "../elements.js";
import { csrfToken } from "../post.js";
import { toast } from "../toasts.js";

const ADDRESS = "/api/v1/search-spaces";

/** @typedef {{ errors?: Problem[], detail: string }} Refusal */
/**
 * What an import would put into the search.
 * @typedef {{
 *   format: string, search: Search & { space: object[] }, notes: string[],
 *   summary: { name: string, takes: string, when: string }[],
 * }} Found
 */

/**
 * Call the API; a request that fails is refused like any other.
 * @param {"import" | "export"} action
 * @param {object} body
 */
async function send(action, body) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
  try {
    const answer = await fetch(`${ADDRESS}/${action}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { ok: answer.ok, told: await answer.json() };
  } catch {
    return { ok: false, told: { detail: "The server did not answer." } };
  }
}

/**
 * @param {string} tag
 * @param {string} text
 * @param {string} css
 */
const element = (tag, text, css = "") =>
  Object.assign(document.createElement(tag), { textContent: text, className: css });

export class Exchange {
  /** @type {Found | null} */
  found = null;
  /** The change comes from here, not from another part of the form. */
  own = false;
  /** @type {Search | undefined} */
  before;

  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    this.dialog = byId("import-space", HTMLDialogElement);
    this.text = byId("import-text", HTMLTextAreaElement);
    this.file = byId("import-file", HTMLInputElement);
    this.format = byId("import-format", HTMLSelectElement);
    this.result = find(this.dialog, "[data-import-result]", HTMLElement);
    this.how = find(this.dialog, "[data-import-how]", HTMLElement);
    this.take = find(this.dialog, "[data-import-take]", HTMLButtonElement);
    this.undo = find(form, "[data-import-undo]", HTMLElement);
    this.opener = find(form, "[data-import-open]", HTMLElement);
    this.opener.addEventListener("click", () => this.open());
    find(form, "[data-export]", HTMLElement).addEventListener("click", () => this.export());
    this.undo.addEventListener("click", () => this.undoImport());
    find(this.dialog, "form", HTMLFormElement).addEventListener("submit", (event) => event.preventDefault());
    find(this.dialog, "[data-import-close]", HTMLElement).addEventListener("click", () => this.dialog.close());
    find(this.dialog, "[data-import-read]", HTMLElement).addEventListener("click", () => this.look());
    this.dialog.addEventListener("input", (event) => this.onInput(event));
    this.take.addEventListener("click", () => this.accept());
    // Undo restores the search from before the import, so it is not offered once something else has changed.
    sheet.onChange(() => {
      if (!this.own) this.undo.hidden = true;
    });
  }

  open() {
    this.forget();
    this.dialog.showModal();
  }

  forget() {
    this.found = null;
    this.take.disabled = true;
    this.how.hidden = true;
    this.result.replaceChildren();
  }

  /** @param {Event} event */
  async onInput({ target }) {
    if (target instanceof HTMLInputElement && target.name === "how") {
      this.checkNames();
      return;
    }
    this.forget();
    const [file] = this.file.files ?? [];
    if (target === this.file && file) {
      this.text.value = await file.text();
      await this.look();
    }
  }

  async look() {
    this.forget();
    const body = { text: this.text.value, ...(this.format.value ? { format: this.format.value } : {}) };
    const { ok, told } = await send("import", body);
    if (!ok) {
      this.refuse(told);
      return;
    }
    this.found = told;
    this.preview(told);
    this.how.hidden = false;
    this.checkNames();
    if (!this.take.disabled) this.take.focus();
  }

  /** @param {Refusal} told */
  refuse(told) {
    const errors = told.errors ?? [{ pointer: "", message: told.detail }];
    const list = element("ul", "", "ef-import-list");
    list.append(
      ...errors.map(({ pointer, message }) => {
        const item = element("li", "");
        const place = pointer.replace(/^\/text/, "");
        if (place) item.append(element("code", place), " ");
        item.append(message);
        return item;
      }),
    );
    const note = element("div", "", "ty-note ty-note-warn");
    note.append(
      find(document, 'template[data-icon="warning"]', HTMLTemplateElement).content.cloneNode(true),
      element("p", "Not imported: it cannot be read, or it has no exact counterpart here."),
    );
    this.result.replaceChildren(note, list);
  }

  /** @param {Found} found */
  preview({ format, search, summary, notes }) {
    const title = find(this.dialog, `option[value="${format}"]`, HTMLElement).textContent;
    const facts = element("dl", "", "ty-facts ef-import-facts");
    const rows = summary.map(({ name, takes, when }) => [name, when ? `${takes}, when ${when}` : takes]);
    const { space, objective, ...rest } = search;
    if (objective) rows.push(["Objective", `${objective.metric}, ${objective.direction}`]);
    rows.push(...Object.entries(rest).map(([name, value]) => [name.replaceAll("_", " "), String(value)]));
    facts.append(...rows.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
    const list = element("ul", "", "ef-import-list text-secondary");
    list.append(...notes.map((note) => element("li", note)));
    this.result.replaceChildren(
      element("p", `${title}: ${space.length} hyperparameter${space.length === 1 ? "" : "s"}.`),
      facts,
      list,
    );
  }

  get appends() {
    return find(this.dialog, '[name="how"][value="append"]', HTMLInputElement).checked;
  }

  /** Refuse to append a hyperparameter whose name is in the space already. */
  checkNames() {
    const here = new Set(this.sheet.space.map((row) => row?.name));
    const twice = this.appends
      ? (this.found?.search.space ?? []).map((row) => row.name).filter((name) => here.has(name))
      : [];
    this.result.querySelector("[data-twice]")?.remove();
    if (twice.length) {
      const told = element("p", `The search space has ${twice.join(", ")} already: replace it instead.`, "ty-error");
      told.dataset.twice = "";
      this.result.append(told);
    }
    this.take.disabled = !this.found || twice.length > 0;
  }

  accept() {
    if (!this.found) return;
    const before = structuredClone(this.sheet.spec.search);
    const { search } = this.found;
    const toggle = find(this.form, '[data-toggle="/search"]', HTMLElement);
    this.change((spec) => {
      const start = spec.search ?? JSON.parse(toggle.dataset.initial ?? "{}");
      if (this.appends) spec.search = { ...start, space: [...(spec.search?.space ?? []), ...search.space] };
      else spec.search = { ...start, ...search };
    });
    this.before = before;
    this.undo.hidden = false;
    this.dialog.close();
    this.undo.focus();
    toast(`${search.space.length} hyperparameter${search.space.length === 1 ? "" : "s"} imported.`);
  }

  undoImport() {
    this.change((spec) => {
      if (this.before === undefined) delete spec.search;
      else spec.search = this.before;
    });
    this.undo.hidden = true;
    this.opener.focus();
    toast("The import is undone.");
  }

  /** @param {(spec: Spec) => void} edit */
  change(edit) {
    this.own = true;
    this.sheet.edit(edit);
    this.own = false;
  }

  async export() {
    const { ok, told } = await send("export", { space: this.sheet.space });
    if (!ok) {
      toast(told.detail, { level: "error" });
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(told.config, null, 2)], { type: "application/json" }));
    link.download = "keras-tuner-space.json";
    link.click();
    URL.revokeObjectURL(link.href);
    toast("Written for keras_tuner.HyperParameters.from_config.");
  }
}
