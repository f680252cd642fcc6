// Asks the judge, `/experiments/validate`, a moment after the last change; only the newest answer counts.
import { csrfToken } from "../post.js";

const WAIT = 250;
const ADDRESS = "/api/v1/experiments/validate";

export class Check extends EventTarget {
  constructor(form, sheet) {
    super();
    this.form = form;
    this.sheet = sheet;
    sheet.addEventListener("change", () => this.soon());
    form.elements.name.addEventListener("input", () => this.soon());
    this.soon(0);
  }

  soon(wait = WAIT) {
    clearTimeout(this.timer);
    this.running?.abort();
    this.tell("busy");
    this.timer = setTimeout(() => this.ask(), wait);
  }

  async ask() {
    this.running = new AbortController();
    const { project, experiment } = this.sheet.known;
    const body = JSON.stringify({ project, experiment, name: this.form.elements.name.value, spec: this.sheet.spec });
    const headers = { "Content-Type": "application/json", "X-CSRFToken": csrfToken() };
    try {
      const answer = await fetch(ADDRESS, { method: "POST", headers, body, signal: this.running.signal });
      const told = await answer.json();
      if (answer.status === 429) this.soon(1000 * Number(answer.headers.get("Retry-After") ?? 1));
      else if (answer.ok) this.tell(told.valid ? "ok" : "bad", told);
      else this.tell("bad", { errors: told.errors ?? [{ pointer: "/spec", message: told.detail }], plan: null });
    } catch (error) {
      if (error.name !== "AbortError") this.tell("away");
    }
  }

  tell(state, answer) {
    this.dispatchEvent(new CustomEvent("verdict", { detail: { state, ...answer } }));
  }
}
