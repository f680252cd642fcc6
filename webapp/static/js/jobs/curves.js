// <ty-curves job names [trial | trials]>: live curves. First it follows, then it asks for what there
// is, then it puts in what came meanwhile; a point is known by its series and x, so twice is harmless.

import { grouped, number } from "../trials/words.js";
import { Chart } from "./chart.js";

const MAX_POINTS = 1500;
const MAX_LINES = 40;

class Curves extends Chart {
  begin() {
    this.names = this.getAttribute("names").split(",");
    this.trial = this.getAttribute("trial");
    this.only = this.getAttribute("trials")?.split(",");
    this.lines = new Map(); // label → {points: Map(x → value)}
    this.total = 0;
    this.waiting = [];
    this.load();
  }

  async load(range = {}) {
    const query = new URLSearchParams({ names: this.names.join(","), max_points: MAX_POINTS, ...range });
    if (this.trial) query.set("trial", this.trial);
    else if (this.only) query.set("trials", this.only.join());
    else query.set("newest", MAX_LINES);
    const answer = await fetch(`/api/v1/jobs/${this.job}/metrics?${query}`);
    if (!answer.ok) {
      this.note.textContent = "The curves could not be loaded; reload the page to try again.";
      return;
    }
    this.lines.clear();
    this.total = this.shown = 0;
    for (const series of (await answer.json()).series) {
      const line = this.line(series.name, series.job, series.trial, series.execution);
      for (const [x, value] of series.points) line.points.set(x, value);
      this.total += series.total_points;
      this.shown += series.points.length;
    }
    const early = this.waiting;
    this.waiting = null;
    if (early) this.take(early);
    this.rebuild();
  }

  line(name, job, trial, execution) {
    let label = this.names.length > 1 ? name : "";
    if (trial && !this.trial) label += ` trial ${trial}`;
    if (execution) label += ` #${execution}`;
    if (!trial && job !== this.job) label += ` job ${job}`;
    label = label.trim() || name;
    if (!this.lines.has(label)) this.lines.set(label, { points: new Map() });
    return this.lines.get(label);
  }

  take(events) {
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
        this.frame = null;
        this.draw();
      });
    }
  }

  wants(trial) {
    if (this.trial) return String(trial) === this.trial;
    return !this.only || this.only.includes(String(trial));
  }

  /** What the curves come to, a row each: for a table of them. */
  get rows() {
    return [...this.lines].map(([label, { points }]) => {
      const values = [...points]
        .sort(([a], [b]) => a - b)
        .map(([, value]) => value)
        .filter((value) => value !== null);
      return [
        label,
        points.size,
        ...[values[0], Math.min(...values), Math.max(...values), values.at(-1)].map((value) => number(value)),
      ];
    });
  }

  data() {
    const labels = [...this.lines.keys()].slice(-MAX_LINES);
    const xs = [...new Set(labels.flatMap((label) => [...this.lines.get(label).points.keys()]))].sort((a, b) => a - b);
    return {
      labels,
      columns: [xs, ...labels.map((label) => xs.map((x) => this.lines.get(label).points.get(x) ?? null))],
    };
  }

  draw() {
    const { labels, columns } = this.data();
    if (!this.chart || labels.join() !== this.drawn) return this.rebuild();
    this.chart.setData(columns);
    this.say(labels.length);
    return undefined;
  }

  picture() {
    if (this.waiting) return null; // still loading
    const { labels, columns } = this.data();
    this.drawn = labels.join();
    this.say(labels.length);
    return columns[0].length ? { labels, columns } : null;
  }

  say(lines) {
    const points = `${grouped(this.shown)} of ${grouped(this.total)} points`;
    const hidden = this.lines.size > lines ? `, the newest ${lines} of ${this.lines.size} lines` : "";
    this.note.textContent = this.total ? points + hidden : "No points yet; they appear as they are made.";
  }
}

customElements.define("ty-curves", Curves);
