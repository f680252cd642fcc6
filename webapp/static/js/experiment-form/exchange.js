// Search spaces of other tools: an import is looked at before it is taken, and can be undone; an export is a file.
import { csrfToken } from "../post.js";
import { toast } from "../toasts.js";

const ADDRESS = "/api/v1/search-spaces";

async function send(action, body) {
  const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
  const answer = await fetch(`${ADDRESS}/${action}`, { method: "POST", headers, body: JSON.stringify(body) });
  return { ok: answer.ok, told: await answer.json() };
}

const element = (tag, text, css = "") =>
  Object.assign(document.createElement(tag), { textContent: text, className: css });

export class Exchange {
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    this.dialog = document.getElementById("import-space");
    this.text = document.getElementById("import-text");
    this.file = document.getElementById("import-file");
    this.format = document.getElementById("import-format");
    this.result = this.dialog.querySelector("[data-import-result]");
    this.how = this.dialog.querySelector("[data-import-how]");
    this.take = this.dialog.querySelector("[data-import-take]");
    this.undo = form.querySelector("[data-import-undo]");
    form.querySelector("[data-import-open]").addEventListener("click", () => this.open());
    form.querySelector("[data-export]").addEventListener("click", () => this.export());
    this.undo.addEventListener("click", () => this.takeBack());
    this.dialog.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    this.dialog.querySelector("[data-import-close]").addEventListener("click", () => this.dialog.close());
    this.dialog.querySelector("[data-import-read]").addEventListener("click", () => this.look());
    this.dialog.addEventListener("input", (event) => this.onInput(event));
    this.take.addEventListener("click", () => this.accept());
    // Undoing goes back to before the import: no longer offered once something else of the search has changed.
    sheet.addEventListener("change", () => {
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

  async onInput(event) {
    if (event.target.name === "how") return this.judgeNames();
    this.forget();
    if (event.target === this.file && this.file.files.length) {
      this.text.value = await this.file.files[0].text();
      return this.look();
    }
    return undefined;
  }

  async look() {
    this.forget();
    const body = { text: this.text.value, ...(this.format.value ? { format: this.format.value } : {}) };
    const { ok, told } = await send("import", body).catch(() => ({
      ok: false,
      told: { detail: "The server did not answer." },
    }));
    if (!ok) return this.refuse(told);
    this.found = told;
    this.preview(told);
    this.how.hidden = false;
    this.judgeNames();
    return this.take.disabled || this.take.focus();
  }

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
      document.querySelector('template[data-icon="warning"]').content.cloneNode(true),
      element("p", "Not taken: this has no exact counterpart here, or cannot be read."),
    );
    this.result.replaceChildren(note, list);
  }

  preview({ format, search, summary, notes }) {
    const title = this.dialog.querySelector(`option[value="${format}"]`).textContent;
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
    return this.dialog.querySelector('[name="how"][value="append"]').checked;
  }

  /** Appending must not name a hyperparameter twice. */
  judgeNames() {
    const here = new Set(this.sheet.space.map((row) => row?.name));
    const twice = this.appends
      ? (this.found?.search.space ?? []).map((row) => row.name).filter((name) => here.has(name))
      : [];
    this.result.querySelector("[data-twice]")?.remove();
    if (twice.length) {
      const told = element(
        "p",
        `${twice.join(", ")} ${twice.length === 1 ? "stands" : "stand"} here already: replace instead.`,
        "ty-error",
      );
      told.dataset.twice = "";
      this.result.append(told);
    }
    this.take.disabled = !this.found || twice.length > 0;
  }

  accept() {
    const before = structuredClone(this.sheet.get("/search"));
    const { search } = this.found;
    this.change((spec) => {
      const start = spec.search ?? JSON.parse(this.form.querySelector('[data-toggle="/search"]').dataset.initial);
      if (this.appends) spec.search = { ...start, space: [...(spec.search?.space ?? []), ...search.space] };
      else spec.search = { ...start, ...search };
    });
    this.before = before;
    this.undo.hidden = false;
    this.dialog.close();
    this.undo.focus();
    toast(`${search.space.length} hyperparameter${search.space.length === 1 ? "" : "s"} imported.`);
  }

  takeBack() {
    this.change((spec) => {
      if (this.before === undefined) delete spec.search;
      else spec.search = this.before;
    });
    this.undo.hidden = true;
    this.form.querySelector("[data-import-open]").focus();
    toast("The import is undone.");
  }

  change(edit) {
    this.own = true;
    this.sheet.edit(edit);
    this.own = false;
  }

  async export() {
    const { ok, told } = await send("export", { space: this.sheet.space }).catch(() => ({
      ok: false,
      told: { detail: "The server did not answer." },
    }));
    if (!ok) return toast(told.detail, { level: "error" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(told.config, null, 2)], { type: "application/json" }));
    link.download = "keras-tuner-space.json";
    link.click();
    URL.revokeObjectURL(link.href);
    return toast("Written for keras_tuner.HyperParameters.from_config.");
  }
}
