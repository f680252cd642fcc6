// Search spaces of other tools. An import is shown before it is accepted and can be undone; an export is a file.

/** @import { Problem, Search, Spec } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { address } from "../../shared/addresses.js";
import { byId, find } from "../../shared/elements.js";
import { csrfToken } from "../../shared/post.js";
import { toast } from "../../shared/toasts.js";

const PLACE = "/api/v1/search-spaces";

/** @typedef {{ errors?: Problem[], detail: string }} Refusal */
/**
 * The result of reading a search space for import.
 * @typedef {{
 *   format: string, search: Search & { space: object[] }, notes: string[],
 *   summary: { name: string, takes: string, when: string }[],
 * }} Imported
 */

/**
 * Call the API; a request that fails has a result with a `detail`, too.
 * @param {"import" | "export"} action
 * @param {object} body
 */
async function send(action, body) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
  try {
    const response = await fetch(`${address(PLACE)}/${action}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    return { ok: response.ok, result: await response.json() };
  } catch {
    return { ok: false, result: { detail: "The server did not answer." } };
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
  /** @type {Imported | null} */
  imported = null;
  /** The change comes from here, not from another part of the form. */
  isOwnChange = false;
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
    this.acceptButton = find(this.dialog, "[data-import-accept]", HTMLButtonElement);
    this.undo = find(form, "[data-import-undo]", HTMLElement);
    this.opener = find(form, "[data-import-open]", HTMLElement);
    this.opener.addEventListener("click", () => this.open());
    find(form, "[data-export]", HTMLElement).addEventListener("click", () => this.export());
    this.undo.addEventListener("click", () => this.undoImport());
    find(this.dialog, "form", HTMLFormElement).addEventListener("submit", (event) => event.preventDefault());
    find(this.dialog, "[data-import-close]", HTMLElement).addEventListener("click", () => this.dialog.close());
    find(this.dialog, "[data-import-read]", HTMLElement).addEventListener("click", () => this.parse());
    this.dialog.addEventListener("input", (event) => this.onInput(event));
    this.acceptButton.addEventListener("click", () => this.accept());
    // Undo restores the search from before the import, so it is not offered once something else has changed.
    sheet.onChange(() => {
      if (!this.isOwnChange) this.undo.hidden = true;
    });
  }

  open() {
    this.forget();
    this.dialog.showModal();
  }

  forget() {
    this.imported = null;
    this.acceptButton.disabled = true;
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
      await this.parse();
    }
  }

  async parse() {
    this.forget();
    const body = { text: this.text.value, ...(this.format.value ? { format: this.format.value } : {}) };
    const { ok, result } = await send("import", body);
    if (!ok) {
      this.showErrors(result);
      return;
    }
    this.imported = result;
    this.preview(result);
    this.how.hidden = false;
    this.checkNames();
    if (!this.acceptButton.disabled) this.acceptButton.focus();
  }

  /** @param {Refusal} refusal */
  showErrors(refusal) {
    const errors = refusal.errors ?? [{ pointer: "", message: refusal.detail }];
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

  /** @param {Imported} imported */
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
    const duplicates = this.appends
      ? (this.imported?.search.space ?? []).map((row) => row.name).filter((name) => here.has(name))
      : [];
    this.result.querySelector("[data-duplicates]")?.remove();
    if (duplicates.length) {
      const message = element(
        "p",
        `The search space has ${duplicates.join(", ")} already: replace it instead.`,
        "ty-error",
      );
      message.dataset.duplicates = "";
      this.result.append(message);
    }
    this.acceptButton.disabled = !this.imported || duplicates.length > 0;
  }

  accept() {
    if (!this.imported) return;
    const before = structuredClone(this.sheet.spec.search);
    const { search } = this.imported;
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
    this.isOwnChange = true;
    this.sheet.edit(edit);
    this.isOwnChange = false;
  }

  async export() {
    const { ok, result } = await send("export", { space: this.sheet.space });
    if (!ok) {
      toast(result.detail, { level: "error" });
      return;
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(result.config, null, 2)], { type: "application/json" }));
    link.download = "keras-tuner-space.json";
    link.click();
    URL.revokeObjectURL(link.href);
    toast("Written for keras_tuner.HyperParameters.from_config.");
  }
}
