// <ty-curves job names [trial] [execution]>: live curves. First it follows, then it asks for what there
// is, then it puts in what came meanwhile; a point is known by its series and x, so twice is harmless.
import uPlot from "../../vendor/uplot-1.6.32/uPlot.esm.js";
import { follow } from "./live.js";

const COLOURS = ["#0b7fc7", "#d9772b", "#3a9d46", "#c2417f", "#7b62c9", "#8a7a2e", "#159a9c", "#b04a3f", "#5f7f95", "#a0579e"];
const HEIGHT = 220;
const MAX_POINTS = 1500;
const MAX_LINES = 40;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000]; // epochs and trials

class Curves extends HTMLElement {
  connectedCallback() {
    this.job = Number(this.getAttribute("job"));
    this.names = this.getAttribute("names").split(",");
    this.trial = this.getAttribute("trial");
    this.lines = new Map(); // label → {points: Map(x → value)}
    this.total = 0;
    this.note = Object.assign(document.createElement("div"), { className: "ty-chart-note" });
    this.append(this.note);
    const start = Number(document.querySelector("[data-cursor]")?.dataset.cursor ?? 0);
    this.waiting = [];
    this.stop = follow(this.job, start, (events) => this.take(events));
    this.resize = new ResizeObserver(() => this.chart?.setSize({ width: this.clientWidth, height: HEIGHT }));
    this.resize.observe(this);
    this.theme = new MutationObserver(() => this.rebuild());
    this.theme.observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
    this.load();
  }

  disconnectedCallback() {
    this.stop?.();
    this.resize?.disconnect();
    this.theme?.disconnect();
    this.chart?.destroy();
  }

  async load(range = {}) {
    const query = new URLSearchParams({ names: this.names.join(","), max_points: MAX_POINTS, ...range });
    if (this.trial) query.set("trial", this.trial);
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
      if (event.type !== "metric" || (this.trial && String(event.trial) !== this.trial)) continue;
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

  data() {
    const labels = [...this.lines.keys()].slice(-MAX_LINES);
    const xs = [...new Set(labels.flatMap((label) => [...this.lines.get(label).points.keys()]))].sort((a, b) => a - b);
    return { labels, columns: [xs, ...labels.map((label) => xs.map((x) => this.lines.get(label).points.get(x) ?? null))] };
  }

  draw() {
    const { labels, columns } = this.data();
    if (!this.chart || labels.join() !== this.drawn) return this.rebuild();
    this.chart.setData(columns);
    this.say(labels.length);
    return undefined;
  }

  rebuild() {
    const { labels, columns } = this.data();
    this.drawn = labels.join();
    this.chart?.destroy();
    this.chart = null;
    if (columns[0].length) {
      this.chart = new uPlot(options(this.clientWidth, labels), columns, this);
      this.append(this.note);
    }
    this.say(labels.length);
  }

  say(lines) {
    const points = `${this.shown.toLocaleString("en")} of ${this.total.toLocaleString("en")} points`;
    const hidden = this.lines.size > lines ? `, the newest ${lines} of ${this.lines.size} lines` : "";
    this.note.textContent = this.total ? points + hidden : "No points yet; they appear as they are made.";
  }
}

export function options(width, labels, extra = {}) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--tblr-secondary").trim();
  const rule = style.getPropertyValue("--ty-line").trim();
  const axis = { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 }, font: "11px Inter, sans-serif" };
  return {
    width: Math.max(width, 200),
    height: HEIGHT,
    scales: { x: { time: false } },
    axes: [{ ...axis, incrs: WHOLE }, { ...axis, size: 56 }],
    legend: { live: labels.length <= 6, show: labels.length <= 12 },
    cursor: { points: { size: 6 }, focus: { prox: 24 } },
    series: [
      { label: "at" },
      ...labels.map((label, index) => ({
        label,
        stroke: COLOURS[index % COLOURS.length],
        width: labels.length > 8 ? 1 : 1.75,
        spanGaps: true,
        points: { show: (chart) => chart.data[0].length < 3 },
      })),
    ],
    ...extra,
  };
}

customElements.define("ty-curves", Curves);
