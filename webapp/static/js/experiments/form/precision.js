// The cards of the policies: the chosen one, the devices of the chosen pool, and dry runs that compare one with float32.

/** @import { DryRun } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { address } from "../../shared/addresses.js";
import { askLogin } from "../../shared/connection/session.js";
import { closest, find } from "../../shared/elements.js";
import { csrfToken } from "../../shared/post.js";

const AGAIN = 1500;
const PLACE = "/api/v1/experiments/dry-run";
const ENDED = ["failed", "stopped"];
const DEFAULT_POOL = "default";

export class Precision {
  /** The requests that run, by policy. @type {Map<string, AbortController>} */
  running = new Map();

  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.sheet = sheet;
    this.cards = find(form, "[data-policies]", HTMLElement);
    this.cards.addEventListener("click", (event) => {
      const compared = closest(event, "[data-compare]")?.dataset.compare;
      const cast = closest(event, "[data-cast]")?.dataset.cast;
      if (compared) this.compare(compared, true);
      if (cast) this.sheet.put("/after/quantize", { mode: cast }, "rows");
    });
    sheet.onChange(() => this.follow());
    this.follow();
  }

  follow() {
    const { policy = "float32" } = this.sheet.spec.precision ?? {};
    const { pool = DEFAULT_POOL } = this.sheet.spec.resources ?? {};
    const { mode } = this.sheet.spec.after?.quantize ?? {};
    for (const card of this.cards.querySelectorAll("[data-policy]")) {
      if (!(card instanceof HTMLElement)) continue;
      card.classList.toggle("np-chosen", card.dataset.policy === policy);
      card.classList.toggle("np-cast", card.dataset.policy === mode);
      let isKnown = false;
      for (const line of card.querySelectorAll("[data-pool]")) {
        if (!(line instanceof HTMLElement)) continue;
        line.hidden = line.dataset.pool !== pool;
        isKnown ||= !line.hidden;
      }
      const none = find(card, "[data-no-pool]", HTMLElement);
      none.hidden = isKnown || !card.querySelector("[data-pool]");
    }
  }

  /**
   * Ask for a dry run, and again until it has ended. Another spec makes another one.
   * @param {string} policy
   * @param {boolean} again whether to repeat one that has failed
   * @param {string} body the request that is repeated
   * @returns {Promise<void>}
   */
  async compare(policy, again, body = this.request(policy)) {
    this.running.get(policy)?.abort();
    const controller = new AbortController();
    this.running.set(policy, controller);
    const { signal } = controller;
    try {
      const response = await fetch(address(PLACE), {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
        body: JSON.stringify({ ...JSON.parse(body), again }),
        signal,
      });
      if (response.status === 401) {
        this.show(policy, ["You are logged out. Log in, then compare again."]);
        await askLogin();
        return;
      }
      const answer = await response.json();
      if (!response.ok) {
        this.show(policy, [`It cannot be compared: ${answer.errors?.[0]?.message ?? answer.detail}`]);
        return;
      }
      this.take(policy, answer, body);
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      setTimeout(() => signal.aborted || this.compare(policy, false, body), AGAIN);
    }
  }

  /** @param {string} policy */
  request(policy) {
    const { spec, known } = this.sheet;
    return JSON.stringify({ project: known.project, spec: { ...spec, precision: { ...spec.precision, policy } } });
  }

  /**
   * @param {string} policy
   * @param {DryRun} answer
   * @param {string} body
   */
  take(policy, { state, job, finding, error, why_waiting: reason }, body) {
    const link = Object.assign(document.createElement("a"), {
      href: address(`/jobs/${job}`),
      textContent: `job ${job}`,
    });
    if (finding) this.show(policy, [finding, " (", link, ")"]);
    else if (ENDED.includes(state))
      this.show(policy, ["The dry run (", link, ") ", error ? `failed: ${error.message}` : `is ${state}`]);
    else {
      this.show(policy, ["Comparing (", link, `, ${state})… ${reason}`]);
      const { signal } = this.running.get(policy) ?? {};
      setTimeout(() => signal?.aborted || this.compare(policy, false, body), AGAIN);
    }
  }

  /**
   * @param {string} policy
   * @param {(string | Node)[]} parts
   */
  show(policy, parts) {
    find(this.cards, `[data-policy="${policy}"] [data-dry-run]`, HTMLElement).replaceChildren(...parts);
  }
}
