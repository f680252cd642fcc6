// The requests of one endpoint, as all charts of its page show them. They are loaded again while the page is visible.

/** @import { Segment } from "./band.js" */

import { address } from "../../shared/addresses.js";
import { settings, writeAddress } from "../../shared/charts/settings.js";

const LIVE = 5000; // ms, as often as prediction servers report
const SLOW = 20000; // ms, for points of a minute and more
const LIVE_STEP = 60; // seconds of a point

export const RANGES = {
  "15m": "15 min",
  "1h": "1 hour",
  "6h": "6 hours",
  "1d": "1 day",
  "7d": "7 days",
  "30d": "30 days",
};
const FIRST = "1h";

/**
 * Requests in a time, as `GET /endpoints/{name}/traffic` returns them.
 * @typedef {{
 *   seconds: number, requests: number, failed: number, errors: Record<string, number>, versions: Record<string, number>,
 *   requests_per_second: number, p50_ms: number | null, p95_ms: number | null, p99_ms: number | null,
 *   batches: number, rows: number, batch_mean: number | null, batch_p95: number | null, waiting: number,
 * }} Figures
 */
/** @typedef {Figures & { at: string }} Point */
/**
 * @typedef {{
 *   begin: string, end: string, step_seconds: number, since: string | null, total: Figures, points: Point[],
 *   served: Segment[],
 * }} Traffic
 */

export class TrafficStore extends EventTarget {
  /** @type {Traffic | null} */
  data = null;
  /** Why the last request failed; empty if it did not. */
  problem = "";
  /** All versions that were seen so far. @type {Set<number>} */
  known = new Set();
  range = FIRST;
  /** The number of the version whose requests are shown; empty for all. */
  version = "";
  timer = 0;
  /** Counts the requests: the answer to an older one is dropped. */
  asked = 0;

  /** @param {string} endpoint */
  constructor(endpoint) {
    super();
    this.endpoint = endpoint;
    this.read();
  }

  /** Read the range and the version from the address. */
  read() {
    const query = new URLSearchParams(location.search);
    const range = query.get("range") ?? FIRST;
    this.range = range in RANGES ? range : FIRST;
    const version = query.get("version") ?? "";
    this.version = /^\d+$/.test(version) ? version : "";
  }

  /** @param {{ range?: string, version?: string }} wanted */
  choose({ range = this.range, version = this.version }) {
    const query = new URLSearchParams(location.search);
    for (const [name, value, first] of [
      ["range", range, FIRST],
      ["version", version, ""],
    ]) {
      if (value === first) query.delete(name);
      else query.set(name, value);
    }
    if (range !== this.range) query.delete("ax.time.xrange"); // a part of another time
    writeAddress(query, true);
    settings.read();
    settings.notify("all", null);
    this.onAddress();
  }

  start() {
    addEventListener("popstate", this.onAddress);
    document.addEventListener("visibilitychange", this.onVisible);
    this.load();
  }

  stop() {
    this.asked++; // the answer to a running request would begin the next one
    clearTimeout(this.timer);
    removeEventListener("popstate", this.onAddress);
    document.removeEventListener("visibilitychange", this.onVisible);
  }

  onAddress = () => {
    const { range, version } = this;
    this.read();
    if (range !== this.range || version !== this.version) this.load();
  };

  onVisible = () => {
    if (document.visibilityState === "visible") this.load();
  };

  async load() {
    clearTimeout(this.timer);
    const asked = ++this.asked;
    const query = new URLSearchParams({ range: this.range });
    if (this.version) query.set("version", this.version);
    try {
      const answer = await fetch(address(`/api/v1/endpoints/${this.endpoint}/traffic?${query}`));
      if (asked !== this.asked) return;
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      this.receive(await answer.json());
    } catch (error) {
      this.problem = error instanceof Error ? error.message : String(error);
    }
    if (asked !== this.asked) return;
    this.dispatchEvent(new Event("change"));
    if (document.visibilityState === "visible") {
      const step = this.data?.step_seconds ?? 0;
      this.timer = setTimeout(() => this.load(), step < LIVE_STEP ? LIVE : SLOW);
    }
  }

  /** @param {Traffic} data */
  receive(data) {
    this.data = data;
    this.problem = "";
    for (const number of Object.keys(data.total.versions)) if (Number(number)) this.known.add(Number(number));
    for (const { version } of data.served) if (version) this.known.add(version);
  }
}

/** @param {string} time */
export const seconds = (time) => Date.parse(time) / 1000;
