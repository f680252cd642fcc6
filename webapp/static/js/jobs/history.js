// <ty-history job>: the score of each trial and the best so far. Dragging keeps those trials, here and in
// the table; with the chart in focus, arrows go from trial to trial.

import { el } from "../trials/dom.js";
import { viewOf } from "../trials/view.js";
import { grouped, number, trials } from "../trials/words.js";
import { Chart } from "./chart.js";

const MANY = 1000;
const LEAST_DRAG = 4; // pixels: less is a click
const FEW = 8; // of fewer trials none counts as far off
const FAR = 3; // times the distance between the quartiles (Tukey's outer fence)

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
    const columns = this.columns();
    if (this.chart && columns && this.isMany === this.drawnMany) this.chart.setData(columns);
    else this.rebuild();
  }

  get isMany() {
    return this.indices.length > MANY;
  }

  /** Numbers, scores that fit, the best so far, scores filtered out, scores picked; nothing while there are none. */
  columns() {
    const { store, picked, mask } = this.view;
    if (!store.ready) {
      this.note.textContent = store.failed
        ? "The trials could not be loaded; reload the page to try again."
        : "Loading the trials …";
      return null;
    }
    if (this.known?.version !== store.version) this.known = this.read();
    const { numbers, scores, bests } = this.known;
    const [fitting, others, ringed] = [0, 1, 2].map(() => Array(scores.length).fill(null));
    let count = 0;
    for (let at = 0; at < scores.length; at++) {
      const fits = mask[this.indices[at]];
      count += fits;
      if (fits) fitting[at] = scores[at];
      else others[at] = scores[at];
      if (picked.size && picked.has(numbers[at])) ringed[at] = scores[at];
    }
    this.tell(count, this.indices);
    return numbers.length ? [numbers, fitting, bests, others, ringed] : null;
  }

  /** What stays while only filters change. */
  read() {
    const { store } = this.view;
    this.indices = store.scored();
    let best = null;
    const scores = this.indices.map((index) => store.score[index]);
    const bests = scores.map((score) => (best = best === null || store.better(score, best) ? score : best));
    const corners = bests.flatMap((value, at) =>
      at === 0 || at === bests.length - 1 || value !== bests[at - 1] ? [at] : [],
    );
    const fence = outerFence(scores, store.better(1, 0));
    return {
      version: store.version,
      corners,
      fence,
      numbers: this.indices.map((index) => store.number[index]),
      scores,
      bests,
    };
  }

  picture() {
    const columns = this.columns();
    if (!columns) return null;
    const many = this.isMany;
    this.drawnMany = many;
    const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [fit, line, ring] = [read("--ty-running"), read("--ty-line"), read("--ty-pruned")];
    const rings = { paths: () => null, points: { show: true, size: 10, width: 2 }, stroke: ring };
    const dots = (colour) => ({
      paths: () => null,
      points: { show: !many, size: 6 },
      width: 0,
      stroke: colour,
      fill: many ? colour : undefined,
    });
    const steps = {
      paths: (chart, series) => stairs(chart, series, this.known.corners),
      points: { show: false },
      stroke: ring,
    };
    const squared = many
      ? [
          [3, line],
          [1, fit],
        ]
      : null;
    return {
      labels: ["score", "best so far", "filtered out", "picked"],
      columns,
      drawn: [dots(fit), steps, dots(line), rings],
      more: this.brush(squared),
    };
  }

  /** What dragging does: no zoom, but a filter on the trials' numbers. `squared`: series of many dots and their colours. */
  brush(squared) {
    const height = this.hasAttribute("tall") ? 360 : undefined;
    return {
      height,
      scales: { x: { time: false }, y: { range: (_, low, high) => this.heights(low, high) } },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 24 } },
      hooks: {
        setSelect: [(chart) => this.dragged(chart)],
        drawSeries: [(chart, at) => squared && at === 1 && squares(chart, squared)],
      },
    };
  }

  /** From where to where scores are drawn: some that are far off shall not make all others look alike. */
  heights(low, high) {
    if (low === null) return [null, null];
    const { fence } = this.known;
    if (fence && this.view.store.better(1, 0)) low = fence.at;
    else if (fence) high = fence.at;
    const edge = (high - low || Math.abs(high) || 1) / 20;
    return [low - edge, high + edge];
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
    const words = !all.length
      ? "No trial has been completed yet."
      : count === all.length
        ? trials(count)
        : `${trials(count)} of ${grouped(all.length)}`;
    const { fence } = this.known;
    const outside = fence
      ? `; ${grouped(fence.beyond)} ${store.better(1, 0) ? "below" : "above"} ${number(fence.at)} not drawn`
      : "";
    this.note.textContent = `${words}${outside}`;
    this.setAttribute("aria-label", `History: ${store.objective.metric} of ${words} Use the arrow keys.`);
  }
}

/** The worst score that is still near the others, and how many lie beyond it; null where none or many do. */
function outerFence(scores, upwards) {
  const sorted = Float64Array.from(scores).sort();
  const [first, third] = [0.25, 0.75].map((part) => sorted[Math.floor(part * (sorted.length - 1))]);
  const far = FAR * (third - first);
  const near = upwards ? (score) => score >= first - far : (score) => score <= third + far;
  const inside = sorted.filter(near);
  const beyond = sorted.length - inside.length;
  if (sorted.length < FEW || !far || !beyond || beyond > sorted.length / 10) return null;
  return { at: upwards ? inside[0] : inside.at(-1), beyond };
}

/** A line with a corner where its values change: one through ten thousand places takes as long as all the dots. */
function stairs(chart, series, corners) {
  const stroke = new Path2D();
  const [xs, ys] = [chart.data[0], chart.data[series]];
  let level = null;
  for (const at of corners) {
    const [x, y] = [chart.valToPos(xs[at], "x", true), chart.valToPos(ys[at], "y", true)].map(Math.round);
    if (level === null) stroke.moveTo(x, y);
    else stroke.lineTo(x, level);
    stroke.lineTo(x, y);
    level = y;
  }
  return { stroke, fill: null, clip: null, band: null, gaps: null, flags: 0 };
}

const layer = el("canvas");
let picture = null;

/** An empty picture of a size; the last one is wiped where it has that size. */
function blank(width, height) {
  if (picture?.width === width && picture.height === height) {
    picture.pixels.fill(0);
    return picture;
  }
  [layer.width, layer.height] = [width, height];
  const pen = layer.getContext("2d", { willReadFrequently: true });
  const image = pen.createImageData(width, height);
  picture = { width, height, pen, image, pixels: new Uint32Array(image.data.buffer) };
  return picture;
}

/** A colour as it stands in a picture. */
function inked(pen, colour) {
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
}

/** Thousands of dots as squares, set in a picture pixel by pixel: as rectangles or arcs they would take ten times as long. */
function squares({ ctx, bbox, data, scales }, drawn) {
  const size = Math.round(3 * devicePixelRatio);
  const { pen, image, pixels, width } = blank(bbox.width + size, bbox.height + size);
  const across = bbox.width / (scales.x.max - scales.x.min);
  const up = bbox.height / (scales.y.max - scales.y.min);
  const [xs] = data;
  for (const [series, colour] of drawn) {
    const [ys, ink] = [data[series], inked(pen, colour)];
    for (let at = 0; at < xs.length; at++) {
      if (ys[at] === null) continue;
      let corner = Math.round((scales.y.max - ys[at]) * up) * width + Math.round((xs[at] - scales.x.min) * across);
      for (let line = 0; line < size; line++, corner += width) {
        for (let place = 0; place < size; place++) pixels[corner + place] = ink;
      }
    }
  }
  pen.putImageData(image, 0, 0);
  ctx.drawImage(layer, bbox.left - (size >> 1), bbox.top - (size >> 1));
}

customElements.define("ty-history", History);
