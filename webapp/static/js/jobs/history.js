// <ty-history job>: the score of each trial and the best so far. Dragging keeps those trials, here and in
// the table; with the chart in focus, arrows go from trial to trial.
import uPlot from "../../vendor/uplot-1.6.32/uPlot.esm.js";
import { Chart } from "./chart.js";
import { viewOf } from "../trials/view.js";
import { number, trials } from "../trials/words.js";

const MANY = 1000;
const LEAST_DRAG = 4; // pixels: less is a click

class History extends Chart {
  begin() {
    this.view = viewOf(this.job);
    this.changed = (event) => this.changing(event.what);
    this.view.addEventListener("change", this.changed);
    this.tabIndex = 0;
    this.setAttribute("role", "application");
    this.setAttribute("aria-roledescription", "chart");
    this.addEventListener("keydown", (event) => this.key(event));
    this.note.setAttribute("role", "status");
    this.rebuild();
  }

  end() {
    this.view?.removeEventListener("change", this.changed);
    cancelAnimationFrame(this.frame);
    super.end();
  }

  take() {} // the store behind the view follows the job

  changing(what) {
    if (!["data", "filter", "all", "pick"].includes(what)) return;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.redraw());
  }

  redraw() {
    if (!this.stop) return;
    const picture = this.picture();
    if (this.chart && picture && this.lines === picture.labels.join()) this.chart.setData(picture.columns);
    else this.rebuild();
  }

  picture() {
    const { store } = this.view;
    if (!store.ready) {
      this.note.textContent = store.failed ? "The trials could not be loaded; reload the page to try again." : "Loading the trials …";
      return null;
    }
    const all = store.scored();
    this.indices = all;
    const { fits } = this.view;
    const fitting = all.map(fits);
    const count = fitting.filter(Boolean).length;
    this.tell(count, all);
    if (!all.length) return null;
    let best = null;
    const bests = all.map((index) => (best = best === null || store.better(store.score[index], best) ? store.score[index] : best));
    const scores = all.map((index) => store.score[index]);
    const some = (wanted) => scores.map((score, at) => (fitting[at] === wanted ? score : null));
    const picked = all.map((index, at) => (this.view.picked.has(store.number[index]) ? scores[at] : null));
    const dots = (more = {}) => (all.length > MANY ? { paths: squares, points: { show: false }, width: 0, ...more } : { paths: () => null, points: { show: true, size: 6, ...more } });
    const steps = { paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } };
    const labels = ["score", "best so far", "filtered out", "picked"];
    const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [fit, line, ring] = [read("--ty-running"), read("--ty-line"), read("--ty-pruned")];
    const filled = (colour, more) => ({ ...dots(more), stroke: colour, fill: all.length > MANY ? colour : undefined });
    const columns = [all.map((index) => store.number[index]), some(true), bests, some(false), picked];
    this.lines = labels.join();
    return { labels, columns, drawn: [filled(fit), { ...steps, stroke: ring }, filled(line), { ...dots({ size: 10, width: 2 }), paths: () => null, points: { show: true, size: 10, width: 2 }, stroke: ring }], more: this.brush() };
  }

  /** What dragging does: no zoom, but a filter on the trials' numbers. */
  brush() {
    const height = this.hasAttribute("tall") ? 360 : undefined;
    return {
      height,
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 24 } },
      hooks: { setSelect: [(chart) => this.dragged(chart)] },
    };
  }

  dragged(chart) {
    const { left, width } = chart.select;
    if (width < LEAST_DRAG) return;
    const [low, high] = [left, left + width].map((at) => chart.posToVal(at, "x"));
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.view.filter("number", { low: Math.ceil(low), high: Math.floor(high) });
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const last = (this.indices?.length ?? 0) - 1;
    const trial = this.view.store.number[this.indices?.[this.at]];
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    if (step) this.go(Math.min(Math.max((this.at ?? (step > 0 ? -1 : last + 1)) + step, 0), last));
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(last);
    else if (event.key === "x" && trial) this.view.pick(trial);
    else if (event.key === "Enter" && trial) location.assign(`/jobs/${this.job}/trials/${trial}`);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  go(at) {
    this.at = at;
    const { store } = this.view;
    const index = this.indices[at];
    const [left, top] = [this.chart.valToPos(store.number[index], "x"), this.chart.valToPos(store.score[index], "y")];
    this.chart.setCursor({ left, top });
    this.note.textContent = `Trial ${store.number[index]}: ${number(store.score[index])} (x picks it, Enter opens it)`;
  }

  tell(count, all) {
    const { store } = this.view;
    const words = !all.length ? "No trial has been completed yet." : count === all.length ? trials(count) : `${trials(count)} of ${all.length.toLocaleString("en")}`;
    this.note.textContent = words;
    this.setAttribute("aria-label", `History: ${store.objective.metric} of ${words} Use the arrow keys.`);
  }
}

/** Thousands of dots as squares of one path: an arc each would take ten times as long. */
function squares(chart, series, from, to) {
  const fill = new Path2D();
  const size = 3 * devicePixelRatio;
  const [xs, ys] = [chart.data[0], chart.data[series]];
  for (let at = from; at <= to; at++) {
    if (ys[at] !== null) fill.rect(chart.valToPos(xs[at], "x", true) - size / 2, chart.valToPos(ys[at], "y", true) - size / 2, size, size);
  }
  return { fill, stroke: null, clip: null, band: null, gaps: null, flags: 0 };
}

customElements.define("ty-history", History);
