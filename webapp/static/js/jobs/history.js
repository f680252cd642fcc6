// <ty-history job>: the score of each trial and the best so far. Dragging filters the trials, here and in the table;
// with the chart in focus, arrows go from trial to trial.

/** @import uPlot from "uplot" */
/** @import { AlignedData, Options, Series } from "uplot" */
/** @import { Drawing, Values } from "./chart.js" */
/** @import { ChangeKind, View } from "../trials/view.js" */
import { el } from "../trials/dom.js";
import { viewOf } from "../trials/view.js";
import { grouped, number, trials } from "../trials/words.js";
import { Chart } from "./chart.js";

const MANY = 1000;
const LEAST_DRAG = 4; // pixels: less is a click
const FEW = 8; // with fewer trials, no score is an outlier
const FAR = 3; // times the distance between the quartiles (Tukey's outer fence)

/** @typedef {{ at: number, beyond: number }} Fence */
/** @typedef {[series: number, colour: string]} Coloured */

class History extends Chart {
  frame = 0;
  /** The place of the trial that the keyboard has reached. @type {number | undefined} */
  at;
  drawnMany = false;
  /** @type {number[]} */
  indices = [];
  /** Values that do not depend on the filters. @type {ReturnType<History["read"]> | null} */
  known = null;
  /** @type {View} */
  view;
  ignore = () => {};

  /** @override */
  begin() {
    this.view = viewOf(this.job);
    this.ignore = this.view.onChange((kind) => this.changed(kind));
    this.tabIndex = 0;
    this.setAttribute("role", "application");
    this.setAttribute("aria-roledescription", "chart");
    this.addEventListener("keydown", (event) => this.key(event));
    this.note.setAttribute("role", "status");
    this.rebuild();
  }

  /** @override */
  end() {
    this.ignore();
    cancelAnimationFrame(this.frame);
    super.end();
  }

  /** @param {ChangeKind} kind */
  changed(kind) {
    if (!["data", "filter", "all", "selection"].includes(kind)) return;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.redraw());
  }

  redraw() {
    if (!this.stop) return;
    const columns = this.columns();
    if (this.chart && columns && this.isMany === this.drawnMany)
      this.chart.setData(/** @type {AlignedData} */ (columns));
    else this.rebuild();
  }

  get isMany() {
    return this.indices.length > MANY;
  }

  /**
   * Return the numbers of the trials, the scores that fit the filters, the best so far, the scores that do not fit, and
   * the scores of selected trials; null while there are none.
   * @returns {Values[] | null}
   */
  columns() {
    const { store, selected, mask } = this.view;
    if (!store.ready) {
      this.note.textContent = store.failed
        ? "The trials could not be loaded; reload the page to try again."
        : "Loading the trials …";
      return null;
    }
    if (this.known?.version !== store.version) this.known = this.read();
    const { numbers, scores, bests } = this.known;
    const [fitting, others, ringed] = [0, 1, 2].map(() => /** @type {Values} */ (Array(scores.length).fill(null)));
    let count = 0;
    for (let at = 0; at < scores.length; at++) {
      const fits = mask[this.indices[at]];
      count += fits;
      if (fits) fitting[at] = scores[at];
      else others[at] = scores[at];
      if (selected.size && selected.has(numbers[at])) ringed[at] = scores[at];
    }
    this.showCounts(this.known.fence, count, this.indices.length);
    return numbers.length ? [numbers, fitting, bests, others, ringed] : null;
  }

  read() {
    const { store } = this.view;
    this.indices = store.scored();
    const scores = this.indices.map((index) => Number(store.score[index]));
    let [best] = scores;
    const bests = scores.map((score) => {
      if (store.better(score, best)) best = score;
      return best;
    });
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

  /**
   * @override
   * @returns {Drawing | null}
   */
  picture() {
    const columns = this.columns();
    if (!columns) return null;
    const many = this.isMany;
    this.drawnMany = many;
    const read = (/** @type {string} */ name) =>
      getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [fit, line, ring] = [read("--ty-running"), read("--ty-line"), read("--ty-pruned")];
    const rings = { paths: () => null, points: { show: true, size: 10, width: 2 }, stroke: ring };
    /**
     * @param {string} colour
     * @returns {Partial<Series>}
     */
    const dots = (colour) => ({
      paths: () => null,
      points: { show: !many, size: 6 },
      width: 0,
      stroke: colour,
      fill: many ? colour : undefined,
    });
    /** @type {Partial<Series>} */
    const steps = {
      paths: (chart, series) => stairs(chart, series, this.known?.corners ?? []),
      points: { show: false },
      stroke: ring,
    };
    return {
      labels: ["score", "best so far", "filtered out", "selected"],
      columns,
      drawn: [dots(fit), steps, dots(line), rings],
      more: this.brush(
        many
          ? [
              [3, line],
              [1, fit],
            ]
          : null,
      ),
    };
  }

  /**
   * Let dragging filter by the numbers of trials instead of zooming.
   * @param {Coloured[] | null} squared series of many dots and their colours
   * @returns {Partial<Options>}
   */
  brush(squared) {
    const height = this.hasAttribute("tall") ? 360 : undefined;
    return {
      height,
      scales: { x: { time: false }, y: { range: (_, low, high) => this.heights(low, high) } },
      cursor: { drag: { x: true, y: false, setScale: false }, points: { size: 6 }, focus: { prox: 24 } },
      hooks: {
        setSelect: [(chart) => this.dragged(chart)],
        drawSeries: [
          (chart, at) => {
            if (squared && at === 1) squares(chart, squared);
          },
        ],
      },
    };
  }

  /**
   * Return the range of scores to draw: a few outliers must not make all others look alike.
   * @param {number | null} low
   * @param {number | null} high
   * @returns {[number | null, number | null]}
   */
  heights(low, high) {
    if (low === null || high === null) return [null, null];
    const fence = this.known?.fence;
    const upwards = this.view.store.better(1, 0);
    const least = fence && upwards ? fence.at : low;
    const most = fence && !upwards ? fence.at : high;
    const edge = (most - least || Math.abs(most) || 1) / 20;
    return [least - edge, most + edge];
  }

  /** @param {uPlot} chart */
  dragged(chart) {
    const { left, width } = chart.select;
    if (width < LEAST_DRAG) return;
    const [low, high] = [left, left + width].map((at) => chart.posToVal(at, "x"));
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.view.filter("number", { low: Math.ceil(low), high: Math.floor(high) });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const last = this.indices.length - 1;
    const trial = this.at === undefined ? undefined : this.view.store.number[this.indices[this.at]];
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    if (step) this.go(Math.min(Math.max((this.at ?? (step > 0 ? -1 : last + 1)) + step, 0), last));
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(last);
    else if (event.key === "x" && trial) this.view.toggleSelected(trial);
    else if (event.key === "Enter" && trial) location.assign(`/jobs/${this.job}/trials/${trial}`);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} at */
  go(at) {
    if (!this.chart) return;
    this.at = at;
    const { store } = this.view;
    const index = this.indices[at];
    const score = Number(store.score[index]);
    const [left, top] = [this.chart.valToPos(store.number[index], "x"), this.chart.valToPos(score, "y")];
    this.chart.setCursor({ left, top });
    this.note.textContent = `Trial ${store.number[index]}: ${number(score)} (x selects it, Enter opens it)`;
  }

  /**
   * @param {Fence | null} fence
   * @param {number} count
   * @param {number} all
   */
  showCounts(fence, count, all) {
    const { store } = this.view;
    const words = !all
      ? "No trial has been completed yet."
      : count === all
        ? trials(count)
        : `${trials(count)} of ${grouped(all)}`;
    const outside = fence
      ? `; ${grouped(fence.beyond)} ${store.better(1, 0) ? "below" : "above"} ${number(fence.at)} not drawn`
      : "";
    this.note.textContent = `${words}${outside}`;
    this.setAttribute("aria-label", `History: ${store.objective.metric} of ${words} Use the arrow keys.`);
  }
}

/**
 * Return the worst score that is not an outlier, and how many are; null if none or many are.
 * @param {number[]} scores
 * @param {boolean} upwards
 * @returns {Fence | null}
 */
function outerFence(scores, upwards) {
  const sorted = Float64Array.from(scores).sort();
  const [first, third] = [0.25, 0.75].map((part) => sorted[Math.floor(part * (sorted.length - 1))]);
  const far = FAR * (third - first);
  const inside = sorted.filter((score) => (upwards ? score >= first - far : score <= third + far));
  const beyond = sorted.length - inside.length;
  if (sorted.length < FEW || !far || !beyond || beyond > sorted.length / 10) return null;
  return { at: upwards ? inside[0] : inside[inside.length - 1], beyond };
}

/**
 * Draw a line with a corner where its values change: one through ten thousand points takes as long as all the dots.
 * @param {uPlot} chart
 * @param {number} series
 * @param {number[]} corners
 * @returns {Series.Paths}
 */
function stairs(chart, series, corners) {
  const stroke = new Path2D();
  const [xs, ys] = [chart.data[0], chart.data[series]];
  /** @type {number | null} */
  let level = null;
  for (const at of corners) {
    const x = Math.round(chart.valToPos(xs[at], "x", true));
    const y = Math.round(chart.valToPos(Number(ys[at]), "y", true));
    if (level === null) stroke.moveTo(x, y);
    else stroke.lineTo(x, level);
    stroke.lineTo(x, y);
    level = y;
  }
  return { stroke, fill: null, clip: null, band: null, flags: 0 };
}

/**
 * @typedef {{ width: number, height: number, pen: CanvasRenderingContext2D, image: ImageData, pixels: Uint32Array }} Pixels
 */

const layer = el("canvas");
/** @type {Pixels | null} */
let picture = null;

/**
 * Return an empty picture of a size; the last one is used again if it has that size.
 * @param {number} width
 * @param {number} height
 */
function blank(width, height) {
  if (picture?.width === width && picture.height === height) {
    picture.pixels.fill(0);
    return picture;
  }
  [layer.width, layer.height] = [width, height];
  const pen = layer.getContext("2d", { willReadFrequently: true });
  if (!pen) throw new TypeError("the browser draws no canvas");
  const image = pen.createImageData(width, height);
  picture = { width, height, pen, image, pixels: new Uint32Array(image.data.buffer) };
  return picture;
}

/**
 * Return a colour as a pixel of a picture.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} colour
 */
function pixelOf(pen, colour) {
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return new Uint32Array(pen.getImageData(0, 0, 1, 1).data.buffer)[0];
}

/**
 * Draw thousands of dots as squares, pixel by pixel: as rectangles or arcs they would take ten times as long.
 * @param {uPlot} chart
 * @param {Coloured[]} drawn
 */
function squares({ ctx, bbox, data, scales }, drawn) {
  const size = Math.round(3 * devicePixelRatio);
  const { pen, image, pixels, width } = blank(bbox.width + size, bbox.height + size);
  const { min: first = 0, max: last = 1 } = scales.x;
  const { min: low = 0, max: high = 1 } = scales.y;
  const across = bbox.width / (last - first);
  const up = bbox.height / (high - low);
  const [xs] = data;
  for (const [series, colour] of drawn) {
    const [ys, ink] = [data[series], pixelOf(pen, colour)];
    for (let at = 0; at < xs.length; at++) {
      const y = ys[at];
      if (y === null || y === undefined) continue;
      let corner = Math.round((high - y) * up) * width + Math.round((xs[at] - first) * across);
      for (let line = 0; line < size; line++, corner += width) {
        for (let place = 0; place < size; place++) pixels[corner + place] = ink;
      }
    }
  }
  pen.putImageData(image, 0, 0);
  ctx.drawImage(layer, bbox.left - (size >> 1), bbox.top - (size >> 1));
}

customElements.define("ty-history", History);
