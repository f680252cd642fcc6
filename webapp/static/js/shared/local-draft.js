// Keeps the entries of a form in this browser until it is submitted, and offers it when
// the form is opened again: after a reload, a closed tab or a crash. A draft belongs to one person, one address, and the
// thing that the form names in `data-draft-of`, such as a version of code.
import { closest, find, findAll } from "./elements.js";
import { relative } from "./time.js";

/** @typedef {{ at: number, tab: string, values: Record<string, string> }} Draft */
/** @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Field */

const WAIT = 400;
const DAYS = 14;
const PREFIX = "trainyard-draft";
const TAB = "trainyard-tab";
/** Fields that are no contents of the form. */
const OTHERS = ["csrfmiddlewaretoken"];
/** Inputs whose values are secret or cannot be restored. */
const UNKEPT = ["password", "file", "radio"];
/** How many rows a form has: rows are added before their values are restored. */
const ROWS = /-[A-Z_]+_FORMS$/;
/** Dispatched on the form before a draft is restored, with its values. */
export const RESTORING = "ty:restoring";

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

/** Return the name of this tab, which a reload keeps. */
function tabName() {
  const name = `${Date.now()}-${Math.random()}`;
  try {
    sessionStorage.setItem(TAB, sessionStorage.getItem(TAB) ?? name);
    return sessionStorage.getItem(TAB) ?? name;
  } catch {
    return name;
  }
}

/** @param {Field} field */
const fieldValue = (field) =>
  field instanceof HTMLInputElement && field.type === "checkbox" ? (field.checked ? "on" : "") : field.value;

/**
 * Give a field a value, and return whether it can have it: a choice may not be offered any more.
 * @param {Field} field
 * @param {string} value
 */
function put(field, value) {
  if (field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === value)) return false;
  if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "on";
  else field.value = value;
  return true;
}

export class LocalDraft {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.note = find(document, "[data-draft-note]", HTMLElement);
    const user = findAll(document, "[data-user]", HTMLElement)[0]?.dataset.user ?? "";
    const thing = form.dataset.draftOf ? `#${form.dataset.draftOf}` : "";
    this.key = `${PREFIX}:${user}:${location.pathname}${location.search}${thing}`;
    this.tab = tabName();
    /** The tab whose draft is in the fields. */
    this.restored = this.tab;
    this.timer = 0;
    this.isRefused = document.querySelector("[data-problems]") !== null;
    this.first = JSON.stringify(this.values);
    const draft = storage.read(this.key);
    if (this.isRefused) this.keep();
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
      this.forget();
    });
  }

  /** @returns {Field[]} */
  get fields() {
    const fields = /** @type {Field[]} */ (
      [...this.form.elements].filter(
        (field) =>
          field instanceof HTMLInputElement ||
          field instanceof HTMLTextAreaElement ||
          field instanceof HTMLSelectElement,
      )
    );
    return fields.filter(({ name, type }) => name && !OTHERS.includes(name) && !UNKEPT.includes(type));
  }

  /** @returns {Record<string, string>} */
  get values() {
    return Object.fromEntries(this.fields.map((field) => [field.name, fieldValue(field)]));
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
  }

  keep() {
    this.stop();
    const { values } = this;
    if (this.isRefused || JSON.stringify(values) !== this.first)
      storage.write(this.key, { at: Date.now(), tab: this.tab, values });
  }

  /** Forget the draft, unless it was typed in another tab, which may still be open. */
  forget() {
    const draft = storage.read(this.key);
    if (!draft || [this.tab, this.restored].includes(draft.tab)) storage.write(this.key, null);
  }

  /** @param {Draft} draft */
  offer(draft) {
    if (JSON.stringify(draft.values) === JSON.stringify(this.values)) {
      this.restored = draft.tab;
      return;
    }
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
    this.restored = draft.tab;
    this.form.dispatchEvent(new CustomEvent(RESTORING, { detail: draft.values }));
    const refused = this.putValues(draft, Object.keys(draft.values));
    if (!refused.length) return;
    // Choices that follow another field come from the server once that field has its value.
    document.addEventListener("htmx:after:swap", () => this.putValues(draft, refused), { once: true });
  }

  /**
   * Put these values of a draft into their fields. Return the names of those that a field does not offer.
   * @param {Draft} draft
   * @param {string[]} names
   */
  putValues({ values }, names) {
    const differing = this.fields.filter(
      (field) => names.includes(field.name) && !ROWS.test(field.name) && values[field.name] !== fieldValue(field),
    );
    const changed = differing.filter((field) => put(field, values[field.name] ?? ""));
    // Only now, since what follows a change reads the other fields.
    for (const field of changed) {
      field.dispatchEvent(new Event("input", { bubbles: true }));
      if (field.type === "checkbox" || field instanceof HTMLSelectElement)
        field.dispatchEvent(new Event("change", { bubbles: true }));
    }
    return differing.filter((field) => !changed.includes(field)).map(({ name }) => name);
  }
}
