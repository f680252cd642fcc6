// Server-sent events of jobs: what pages follow where a proxy lets no WebSocket through.
import { address } from "../addresses.js";

/** @typedef {import("./live.js").LiveEvent} LiveEvent */
/** @typedef {import("./live.js").Type} Type */

/** @type {Record<Type, true>} */
const TYPES = {
  metric: true,
  log: true,
  state: true,
  trial: true,
  execution: true,
  progress: true,
  phase: true,
  attempt: true,
  artifact: true,
  warning: true,
  checkpoint: true,
  resumed: true,
  revised: true,
};

/**
 * The events of one job after a cursor. The browser opens an interrupted stream again, from the last event that it had.
 */
export class Stream {
  /**
   * @param {number} job
   * @param {number} cursor
   * @param {{
   *   opened: () => void, interrupted: () => void, ended: () => void, events: (events: LiveEvent[]) => void,
   * }} report what happens; `ended`: the server refused it, so the browser does not try again
   */
  constructor(job, cursor, report) {
    this.report = report;
    /** @type {LiveEvent[]} */
    this.waiting = [];
    this.source = new EventSource(addressOf(job, cursor));
    this.source.addEventListener("open", report.opened);
    for (const type of Object.keys(TYPES)) this.source.addEventListener(type, (message) => this.take(message));
    // An event of the server has data, an interruption has none.
    this.source.addEventListener("error", (event) => {
      if (event instanceof MessageEvent) this.end();
      else if (this.source.readyState === EventSource.CLOSED) report.ended();
      else report.interrupted();
    });
  }

  /** @param {MessageEvent<string>} message */
  take(message) {
    // Events that arrive together are drawn together.
    if (this.waiting.length === 0) setTimeout(() => this.report.events(this.waiting.splice(0)));
    this.waiting.push(JSON.parse(message.data));
  }

  /** Return whether the server sends events. */
  isOpen() {
    return this.source.readyState === EventSource.OPEN;
  }

  end() {
    this.close();
    this.report.ended();
  }

  close() {
    this.source.close();
    // The next stream begins at the last event that was drawn.
    this.waiting.length = 0;
  }
}

/**
 * Return the address of a job's events after a cursor.
 * @param {number} job
 * @param {number} cursor
 */
export const addressOf = (job, cursor) => address(`/api/v1/jobs/${job}/events?after=${cursor}`);

/**
 * Return why the server refuses an address of events for good, as too many streams or an unknown job; else an empty text.
 * A stream itself does not have the answer.
 * @param {string} address
 * @returns {Promise<string>}
 */
export async function refusalOf(address) {
  const stop = new AbortController();
  const headers = { Accept: "text/event-stream" };
  try {
    const response = await fetch(address, { cache: "no-store", headers, signal: stop.signal });
    const mayPass = response.ok || response.status === 401 || response.status >= 500;
    return mayPass ? "" : String((await response.json()).detail);
  } catch {
    return "";
  } finally {
    stop.abort();
  }
}
