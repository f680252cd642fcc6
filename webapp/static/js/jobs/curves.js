// <ty-curves job names [trial | trials]>: live curves. First it subscribes, then it loads the points so far, then it adds
// those that arrived meanwhile. A point is identified by its series and x, so adding it twice changes nothing.

/** @import { LiveEvent } from "./live.js" */
/** @import { AlignedData } from "uplot" */
/** @import { Drawing } from "./chart.js" */
import { grouped, number } from "../trials/words.js";
import { Chart } from "./chart.js";

const MAX_POINTS = 1500;
const MAX_LINES = 40;

/** @typedef {{ points: Map<number, number | null> }} Line */
/**
 * @typedef {{
 *   name: string, job: number, trial: number | null, execution: number | null,
 *   points: [number, number | null][], total_points: number,
 * }} MetricSeries
 */

export class Curves extends Chart {
  /** @type {string[]} */
  names = [];
  /** @type {string | null} */
  trial = null;
  /** @type {string[] | undefined} */
  only;
  /** @type {Map<string, Line>} */
  lines = new Map();
  /** @type {LiveEvent[] | null} */
  waiting = [];
  total = 0;
  shown = 0;
  frame = 0;
  drawn = "";

  /** @override */
  begin() {
    this.names = (this.getAttribute("names") ?? "").split(",");
    this.trial = this.getAttribute("trial");
    this.only = this.getAttribute("trials")?.split(",");
    this.lines = new Map();
    this.total = 0;
    this.waiting = [];
    this.load();
  }

  async load() {
    const query = new URLSearchParams({ names: this.names.join(","), max_points: String(MAX_POINTS) });
    if (this.trial) query.set("trial", this.trial);
    else if (this.only) query.set("trials", this.only.join());
    else query.set("newest", String(MAX_LINES));
    const response = await fetch(`/api/v1/jobs/${this.job}/metrics?${query}`);
    if (!response.ok) {
      this.note.textContent = "The curves could not be loaded; reload the page to try again.";
      return;
    }
    this.lines.clear();
    this.total = this.shown = 0;
    /** @type {{ series: MetricSeries[] }} */
    const body = await response.json();
    for (const series of body.series) {
      const line = this.line(series.name, series.job, series.trial, series.execution);
      for (const [x, value] of series.points) line.points.set(x, value);
      this.total += series.total_points;
      this.shown += series.points.length;
    }
    const early = this.waiting;
    this.waiting = null;
    if (early) this.onEvents(early);
    this.rebuild();
  }

  /**
   * Return the line of a series; a new one is empty.
   * @param {string} name
   * @param {number} job
   * @param {number | null} trial
   * @param {number | null} execution
   * @returns {Line}
   */
  line(name, job, trial, execution) {
    let label = this.names.length > 1 ? name : "";
    if (trial && !this.trial) label += ` trial ${trial}`;
    if (execution) label += ` #${execution}`;
    if (!trial && job !== this.job) label += ` job ${job}`;
    label = label.trim() || name;
    const line = this.lines.get(label) ?? { points: new Map() };
    this.lines.set(label, line);
    return line;
  }

  /**
   * @override
   * @param {LiveEvent[]} events
   */
  onEvents(events) {
    if (this.waiting) {
      this.waiting.push(...events);
      return;
    }
    let changed = false;
    for (const event of events) {
      if (event.type !== "metric" || !this.wants(event.trial)) continue;
      for (const [name, x, value] of event.points) {
        if (!this.names.includes(name)) continue;
        this.line(name, event.job, event.trial, event.execution).points.set(x, value);
        this.total += 1;
        this.shown += 1;
        changed = true;
      }
    }
    if (changed && !this.frame) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  /** @param {number} trial */
  wants(trial) {
    if (this.trial) return String(trial) === this.trial;
    return !this.only || this.only.includes(String(trial));
  }

  /** The figures of each curve, for a table. */
  get rows() {
    return [...this.lines].map(([label, { points }]) => {
      const values = [...points].sort(([a], [b]) => a - b).flatMap(([, value]) => (value === null ? [] : [value]));
      return [
        label,
        points.size,
        ...[values[0], Math.min(...values), Math.max(...values), values.at(-1)].map((value) => number(value)),
      ];
    });
  }

  data() {
    const lines = [...this.lines].slice(-MAX_LINES);
    const xs = [...new Set(lines.flatMap(([, { points }]) => [...points.keys()]))].sort((a, b) => a - b);
    return {
      labels: lines.map(([label]) => label),
      columns: [xs, ...lines.map(([, { points }]) => xs.map((x) => points.get(x) ?? null))],
    };
  }

  draw() {
    const { labels, columns } = this.data();
    if (!this.chart || labels.join() !== this.drawn) {
      this.rebuild();
      return;
    }
    this.chart.setData(/** @type {AlignedData} */ (columns));
    this.showCounts(labels.length);
  }

  /**
   * @override
   * @returns {Drawing | null}
   */
  picture() {
    if (this.waiting) return null; // still loading
    const { labels, columns } = this.data();
    this.drawn = labels.join();
    this.showCounts(labels.length);
    return columns[0].length ? { labels, columns } : null;
  }

  /** @param {number} lines */
  showCounts(lines) {
    const points = `${grouped(this.shown)} of ${grouped(this.total)} points`;
    const hidden = this.lines.size > lines ? `, the newest ${lines} of ${this.lines.size} lines` : "";
    this.note.textContent = this.total ? points + hidden : "No points yet; they appear as they are measured.";
  }
}

customElements.define("ty-curves", Curves);
