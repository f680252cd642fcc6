// The base of live charts: they follow a job, fit their width, use the colours of the theme, and survive when the part
// of the page around them is replaced.
/** @import { AlignedData, Options, Series } from "uplot" */
/** @import { LiveEvent } from "./live.js" */
import uPlot from "../../vendor/uplot-1.6.32/uPlot.esm.js";
import { grouped } from "../trials/words.js";
import { cursorOfPage, follow } from "./live.js";

const COLOURS = [
  "#0b7fc7",
  "#d9772b",
  "#3a9d46",
  "#c2417f",
  "#7b62c9",
  "#8a7a2e",
  "#159a9c",
  "#b04a3f",
  "#5f7f95",
  "#a0579e",
];
const HEIGHT = 220;
const WHOLE = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000]; // epochs and trials

/** @typedef {(number | null)[]} Values */
/**
 * The contents of a chart. `drawn` has options of each line, `more` has options of the chart.
 * @typedef {{ labels: string[], columns: Values[], drawn?: Partial<Series>[], more?: Partial<Options> }} Drawing
 */

/** An element with a chart. Subclasses implement `begin()`, `onEvents(events)` and `picture()`. */
export class Chart extends HTMLElement {
  job = 0;
  note = Object.assign(document.createElement("div"), { className: "ty-chart-note" });
  resize = new ResizeObserver(() => this.chart?.setSize({ width: this.clientWidth, height: this.chart.height }));
  theme = new MutationObserver(() => this.rebuild());
  /** @type {uPlot | null} */
  chart = null;
  /** @type {(() => void) | null} */
  stop = null;

  begin() {}

  /** @param {LiveEvent[]} _events */
  onEvents(_events) {}

  /** @returns {Drawing | null} */
  picture() {
    return null;
  }

  connectedCallback() {
    if (this.stop) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.append(this.note);
    this.resize.observe(this);
    this.theme.observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
    const start = cursorOfPage();
    this.stop = follow(this.job, start, (events) => this.onEvents(events));
    this.begin();
  }

  disconnectedCallback() {
    queueMicrotask(() => {
      if (!this.isConnected) this.end(); // an element that was only moved is connected again by now
    });
  }

  end() {
    this.stop?.();
    this.stop = null;
    this.resize.disconnect();
    this.theme.disconnect();
    this.chart?.destroy();
    this.chart = null;
    this.note.remove();
  }

  /** Draw again from the start, because the lines or the colours changed. */
  rebuild() {
    this.chart?.destroy();
    this.chart = null;
    const picture = this.picture();
    if (picture) {
      this.chart = new uPlot(options(this.clientWidth, picture), /** @type {AlignedData} */ (picture.columns), this);
      this.append(this.note);
    }
  }
}

/**
 * @param {number} width
 * @param {Drawing} drawing
 * @returns {Options}
 */
function options(width, { labels, drawn = [], more = {} }) {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--tblr-secondary").trim();
  const rule = style.getPropertyValue("--ty-line").trim();
  const axis = {
    stroke: ink,
    grid: { stroke: rule, width: 1 },
    ticks: { stroke: rule, width: 1 },
    font: "11px Inter, sans-serif",
  };
  return {
    width: Math.max(width, 200),
    scales: { x: { time: false } },
    axes: [
      { ...axis, incrs: WHOLE },
      { ...axis, size: 56, values: (_, marks) => marks.map(formatMark) },
    ],
    legend: { live: labels.length <= 6, show: labels.length <= 12 },
    cursor: { points: { size: 6 }, focus: { prox: 24 } },
    series: [
      { label: "at" },
      ...labels.map((label, index) => ({
        label,
        stroke: COLOURS[index % COLOURS.length],
        width: labels.length > 8 ? 1 : 1.75,
        spanGaps: true,
        points: { show: (/** @type {uPlot} */ chart) => chart.data[0].length < 3 },
        ...drawn[index],
      })),
    ],
    ...more,
    height: more.height ?? HEIGHT,
  };
}

/**
 * Return a mark of the y axis as text. uPlot stops at three decimals, which are too few for a learning rate.
 * @param {number | null} mark
 */
function formatMark(mark) {
  if (mark === null) return "";
  return Math.abs(mark) >= 1000 ? grouped(mark) : String(Number(mark.toPrecision(4)));
}
