// Validates the spec by `/experiments/validate` a moment after the last change; only the newest answer counts.

/** @import { Verdict } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { find } from "../elements.js";
import { csrfToken } from "../post.js";

const WAIT = 250;
const ADDRESS = "/api/v1/experiments/validate";

export class Check extends EventTarget {
  /** @type {AbortController | null} */
  running = null;
  timer = 0;

  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    super();
    this.name = find(form, "[name=name]", HTMLInputElement);
    this.sheet = sheet;
    sheet.onChange(() => this.soon());
    this.name.addEventListener("input", () => this.soon());
    this.soon(0);
  }

  soon(wait = WAIT) {
    clearTimeout(this.timer);
    this.running?.abort();
    this.tell({ state: "busy" });
    this.timer = setTimeout(() => this.ask(), wait);
  }

  async ask() {
    this.running = new AbortController();
    const { project, experiment } = this.sheet.known;
    const body = JSON.stringify({ project, experiment, name: this.name.value, spec: this.sheet.spec });
    const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
    try {
      const answer = await fetch(ADDRESS, { method: "POST", headers, body, signal: this.running.signal });
      const told = await answer.json();
      if (answer.status === 429) this.soon(1000 * Number(answer.headers.get("Retry-After") ?? 1));
      else if (answer.ok) this.tell({ ...told, state: told.valid ? "ok" : "bad" });
      else this.tell({ state: "bad", errors: told.errors ?? [{ pointer: "/spec", message: told.detail }], plan: null });
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError")) this.tell({ state: "away" });
    }
  }

  /** @param {Verdict} detail */
  tell(detail) {
    this.dispatchEvent(new CustomEvent("verdict", { detail }));
  }
}
