// Validates the spec by `/experiments/validate` a moment after the last change; only the newest response counts.

/** @import { Verdict } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { address } from "../../shared/addresses.js";
import { askLogin } from "../../shared/connection/session.js";
import { find } from "../../shared/elements.js";
import { csrfToken } from "../../shared/post.js";

const WAIT = 250;
const PLACE = "/api/v1/experiments/validate";

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
    sheet.onChange((from) => {
      if (from !== "check") this.schedule();
    });
    this.name.addEventListener("input", () => this.schedule());
    this.schedule(0);
  }

  /** Forget the check that is scheduled, and the answer of the one that runs. */
  cancel() {
    clearTimeout(this.timer);
    this.running?.abort();
  }

  schedule(wait = WAIT) {
    this.cancel();
    this.notify({ state: "busy" });
    this.timer = setTimeout(() => this.validate(), wait);
  }

  /** @param {boolean} isAgain whether the same check was refused before */
  async validate(isAgain = false) {
    this.running = new AbortController();
    const { signal } = this.running;
    const { project, experiment } = this.sheet.known;
    const body = JSON.stringify({ project, experiment, name: this.name.value, spec: this.sheet.spec });
    const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
    try {
      const response = await fetch(address(PLACE), { method: "POST", headers, body, signal });
      if (response.status === 401 && !isAgain) {
        this.notify({ state: "logged-out" });
        // Perhaps a login in another tab has replaced the session with which it was asked.
        if ((await askLogin()) && !signal.aborted) {
          this.notify({ state: "busy" });
          await this.validate(true);
        }
        return;
      }
      const result = await response.json();
      // Neither is about the spec: too many requests, and a database that is busy for a moment.
      if (response.status === 429 || response.status === 503)
        this.schedule(1000 * Number(response.headers.get("Retry-After") ?? 1));
      else if (response.ok) this.notify({ ...result, state: result.valid ? "ok" : "bad" });
      else
        this.notify({
          state: "bad",
          errors: result.errors ?? [{ pointer: "/spec", message: result.detail }],
          plan: null,
        });
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError")) this.notify({ state: "away" });
    }
  }

  /** @param {Verdict} detail */
  notify(detail) {
    this.dispatchEvent(new CustomEvent("verdict", { detail }));
  }
}
