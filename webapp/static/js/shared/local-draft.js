// Keeps the entries of a form in this browser until it is submitted, and offers it when
// the form is opened again: after a reload, a closed tab or a crash. A draft belongs to one person and one address.
import { closest, find, findAll } from "./elements.js";
import { relative } from "./time.js";

/** @typedef {{ at: number, values: Record<string, string> }} Draft */

const WAIT = 400;
const DAYS = 14;
const PREFIX = "trainyard-draft";
/** Fields that are no contents of the form. */
const OTHERS = ["csrfmiddlewaretoken"];

/** A browser may refuse to keep anything, or be full: the form then works without a draft. */
const storage = {
  /** @param {string} key @returns {Draft | null} */
  read(key) {
    try {
      const draft = JSON.parse(localStorage.getItem(key) ?? "null");
      return draft && Date.now() - draft.at < DAYS * 86_400_000 ? draft : null;
    } catch {
      return null;
    }
  },
  /** @param {string} key @param {Draft | null} draft */
  write(key, draft) {
    try {
      if (draft) localStorage.setItem(key, JSON.stringify(draft));
      else localStorage.removeItem(key);
    } catch {
      // See above.
    }
  },
};

export class LocalDraft {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.note = find(document, "[data-draft-note]", HTMLElement);
    const user = findAll(document, "[data-user]", HTMLElement)[0]?.dataset.user ?? "";
    this.key = `${PREFIX}:${user}:${location.pathname}`;
    this.timer = 0;
    this.first = JSON.stringify(this.values);
    const draft = storage.read(this.key);
    if (document.getElementById("server-problems")) this.keep();
    else if (draft) this.offer(draft);
    form.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.keep(), WAIT);
    });
    addEventListener("pagehide", () => {
      if (this.timer) this.keep();
    });
    form.addEventListener("submit", (event) => {
      if (event.defaultPrevented) return;
      this.stop();
      storage.write(this.key, null);
    });
  }

  get fields() {
    return [...this.form.elements].filter(
      (field) =>
        (field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement) &&
        field.name &&
        !OTHERS.includes(field.name),
    );
  }

  /** @returns {Record<string, string>} */
  get values() {
    return Object.fromEntries(
      this.fields.map((field) => {
        const { name, value } = /** @type {HTMLInputElement} */ (field);
        return [name, value];
      }),
    );
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  keep() {
    this.stop();
    const { values } = this;
    const isRefused = document.getElementById("server-problems") !== null;
    if (isRefused || JSON.stringify(values) !== this.first) storage.write(this.key, { at: Date.now(), values });
  }

  /** @param {Draft} draft */
  offer(draft) {
    if (JSON.stringify(draft.values) === JSON.stringify(this.values)) return;
    find(this.note, "[data-draft-age]", HTMLElement).textContent = relative((Date.now() - draft.at) / 1000);
    this.note.hidden = false;
    // The address may name a step, to which the browser scrolls once everything is loaded.
    addEventListener("load", () => this.note.scrollIntoView({ block: "center" }));
    this.note.addEventListener("click", (event) => {
      const choice = closest(event, "[data-draft]")?.dataset.draft;
      if (!choice) return;
      this.note.hidden = true;
      if (choice === "restore") this.restore(draft);
      else storage.write(this.key, null);
    });
  }

  /** @param {Draft} draft */
  restore(draft) {
    for (const field of this.fields) {
      const input = /** @type {HTMLInputElement} */ (field);
      const value = draft.values[input.name];
      if (value === undefined || value === input.value) continue;
      input.value = value;
      input.dispatchEvent(new Event("input", { bubbles: true }));
    }
  }
}
