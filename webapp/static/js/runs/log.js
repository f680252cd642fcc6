// <ty-log job [trial] cursor>: the log, followed live, searched and filtered on the server.
/** @import { LiveEvent } from "../shared/connection/live.js" */

import { address } from "../shared/addresses.js";
import { follow } from "../shared/connection/live.js";
import { find } from "../shared/elements.js";
import { grouped } from "../shared/words.js";

const KEPT = 5000;
const LOADED = 2000;

class Log extends HTMLElement {
  job = 0;
  last = 0;
  timer = 0;
  /** Counts the requests: the answer to an older one is dropped. */
  asked = 0;
  /** Events that arrived while the lines are loaded; null once they are. @type {LiveEvent[] | null} */
  waiting = [];
  /** There are older lines than those shown. */
  isCut = false;
  /** @type {string | null} */
  trial = null;
  /** @type {() => void} */
  stop = () => {};
  /** @type {HTMLFormElement} */
  form;
  /** @type {HTMLElement} */
  lines;

  connectedCallback() {
    this.job = Number(this.getAttribute("job"));
    this.trial = this.getAttribute("trial");
    this.innerHTML = `<form class="ty-log-bar">
      <input class="form-control" type="search" name="q" placeholder="Search the log" aria-label="Search the log">
      <select class="form-select" name="level" aria-label="Level">
        <option value="">every level</option>
        <option>debug</option>
        <option>info</option>
        <option>warning</option>
        <option>error</option>
      </select>
      <label class="form-check">
        <input class="form-check-input" type="checkbox" name="tail" checked>
        <span class="form-check-label">follow</span>
      </label>
      <span class="text-secondary ty-small" data-count></span></form>
      <div class="ty-log-lines" tabindex="0" role="log" aria-label="Log"></div>`;
    this.form = find(this, "form", HTMLFormElement);
    this.lines = find(this, ".ty-log-lines", HTMLElement);
    this.form.addEventListener("submit", (event) => event.preventDefault());
    this.form.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.load(), 250);
    });
    this.stop = follow(this.job, Number(this.getAttribute("cursor")), (events) => this.add(events));
    this.load();
  }

  disconnectedCallback() {
    this.stop();
    this.asked++;
    clearTimeout(this.timer);
  }

  /** The current filter of the lines. */
  get filter() {
    const given = new FormData(this.form);
    return { q: String(given.get("q") ?? ""), level: String(given.get("level") ?? ""), follow: given.has("tail") };
  }

  /** @param {string} text */
  setStatus(text) {
    find(this, "[data-count]", HTMLElement).textContent = text;
  }

  async load() {
    const asked = ++this.asked;
    this.waiting = [];
    const { q, level } = this.filter;
    const query = new URLSearchParams({ newest: "true", q, level, limit: String(LOADED) });
    if (this.trial) query.set("trial", this.trial);
    const response = await fetch(address(`/api/v1/jobs/${this.job}/logs?${query}`)).catch(() => null);
    /** @type {{ items: LiveEvent[] } | null} */
    const body = response?.ok ? await response.json() : null;
    if (asked !== this.asked) return;
    const early = this.waiting ?? [];
    this.waiting = null;
    if (!body) {
      this.add(early);
      this.setStatus("The log could not be loaded; reload the page to try again.");
      return;
    }
    this.lines.replaceChildren();
    this.last = 0;
    this.isCut = body.items.length === LOADED;
    this.add(body.items);
    this.add(early);
    if (!this.lines.childElementCount) this.setStatus(q || level ? "No lines match." : "No lines yet.");
  }

  /** @param {LiveEvent[]} events */
  add(events) {
    if (this.waiting) {
      this.waiting.push(...events);
      return;
    }
    const { q, level, follow } = this.filter;
    const wanted = events.filter(
      (event) =>
        event.type === "log" &&
        event.cursor > this.last &&
        (!this.trial || String(event.trial) === this.trial) &&
        (!level || event.level === level) &&
        (!q || event.line.toLowerCase().includes(q.toLowerCase())),
    );
    const newest = wanted.at(-1);
    if (!newest) return;
    this.last = newest.cursor;
    this.lines.append(...wanted.map((event) => row(event, this.job)));
    while (this.lines.childElementCount > KEPT) {
      this.lines.firstElementChild?.remove();
      this.isCut = true;
    }
    const count = this.lines.childElementCount;
    this.setStatus(`${this.isCut ? "the newest " : ""}${grouped(count)} line${count === 1 ? "" : "s"}`);
    if (follow) this.lines.scrollTop = this.lines.scrollHeight;
  }
}

/**
 * Return which trial or step of `job` a line is of; else what wrote it.
 * @param {LiveEvent} event
 * @param {number} job
 */
function sourceOf(event, job) {
  if (event.trial) return `trial ${event.trial}`;
  return event.job === undefined || event.job === job ? event.source : `job ${event.job}`;
}

/**
 * @param {LiveEvent} event
 * @param {number} job
 */
function row(event, job) {
  const line = document.createElement("div");
  line.dataset.level = event.level;
  const time = Object.assign(document.createElement("span"), {
    textContent: new Date(event.time * 1000).toISOString().slice(11, 19),
  });
  const source = Object.assign(document.createElement("span"), {
    textContent: sourceOf(event, job),
  });
  const text = Object.assign(document.createElement("b"), { textContent: event.line });
  line.append(time, source, text);
  return line;
}

customElements.define("ty-log", Log);
