// The base of live charts: they follow a job if they have one, fit their width, use the colours of the theme, show the values at the
// pointer, and survive when the part of the page around them is replaced.
/** @import { AlignedData, Axis, Options, Series } from "uplot" */
/** @import { Scale } from "../charts/axes.js" */
/** @import { Entry } from "../charts/legend.js" */
/** @import { TipRow, TipText } from "../charts/tip.js" */
/** @import { LiveEvent } from "../connection/live.js" */
import uPlot from "../../../vendor/uplot-1.6.32/uPlot.esm.js";
import { scaleOf } from "../charts/axes.js";
import { legendOf } from "../charts/legend.js";
import { settings } from "../charts/settings.js";
import { tip } from "../charts/tip.js";
import { cursorOfPage, follow } from "../connection/live.js";
import { draggedRange, formatMark, horizontal, LEAST_DRAG, LONE, WHOLE } from "./chart-parts.js";

const HEIGHT = 220;

/** Where the pointer went down, as x of the window. */
let pressed = 0;
// On the page: a click may begin before its chart is drawn again, and end in the new one.
document.addEventListener("mousedown", ({ clientX }) => (pressed = clientX), { capture: true });

/** @typedef {(number | null)[]} Values */
/**
 * The contents of a chart: its x values followed by those of each series, and how each is drawn. `across` has options
 * of the x axis, which has marks at whole numbers without them, and `more` those of the whole chart.
 * @typedef {{
 *   columns: Values[], series: Partial<Series>[], legend: Entry[], across?: Partial<Axis>, more?: Partial<Options>,
 * }} Drawing
 */

/**
 * An element with a chart. Subclasses implement `begin()`, `onEvents(events)`, `picture()` and `textAt()`.
 * With the attribute `key`, its axes follow the settings of that chart.
 */
export class Chart extends HTMLElement {
  job = 0;
  note = Object.assign(document.createElement("div"), { className: "ty-chart-note" });
  resize = new ResizeObserver(() => this.fitWidth());
  theme = new MutationObserver(() => this.rebuild());
  /** @type {uPlot | null} */
  chart = null;
  /** @type {HTMLElement | null} */
  legend = null;
  /** @type {(() => void) | null} */
  stop = null;
  ignoreSettings = () => {};
  /** The place on the x axis that the keyboard has reached. @type {number | undefined} */
  at;
  height = HEIGHT;

  begin() {}

  /** @param {LiveEvent[]} _events */
  onEvents(_events) {}

  /** @returns {Drawing | null} */
  picture() {
    return null;
  }

  /**
   * Return the text beside the pointer; null if there is no value.
   * @param {uPlot} _chart
   * @param {number} _at the index of the nearest x value
   * @returns {TipText | null}
   */
  textAt(_chart, _at) {
    return null;
  }

  /** Act on a click that is not a drag. */
  clicked() {}

  /** The number of places that the keyboard can reach. */
  get places() {
    return this.chart?.data[0].length ?? 0;
  }

  /**
   * Move the cursor to a place, for the keyboard, and write its values below the chart.
   * @param {number} at
   */
  go(at) {
    const { chart } = this;
    if (!chart) return;
    const first = chart.data.slice(1).find((column) => column[at] !== null)?.[at];
    chart.setCursor({
      left: chart.valToPos(chart.data[0][at], "x"),
      top: chart.valToPos(first ?? chart.scales.y.min ?? 0, "y"),
    });
    const text = this.textAt(chart, at);
    const words = (/** @type {TipRow} */ { label, value, place }) => [label, value, place].filter(Boolean).join(" ");
    if (text) this.note.textContent = `${text.title}: ${text.rows.map(words).join(", ")}`;
  }

  /** The name of this chart in the settings; empty if it has none. */
  get key() {
    return this.getAttribute("key") ?? "";
  }

  /**
   * Return the name in the settings that an axis follows: charts with a common x axis have a name for it.
   * @param {"x" | "y"} _axis
   */
  keyOf(_axis) {
    return this.key;
  }

  /** @param {"x" | "y"} axis */
  scale(axis) {
    const key = this.keyOf(axis);
    return key ? scaleOf(key, axis) : {};
  }

  /** @param {string | null} chart */
  follows(chart) {
    return this.key !== "" && (chart === this.keyOf("x") || chart === this.keyOf("y"));
  }

  connectedCallback() {
    if (this.stop) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.tabIndex = 0;
    this.setAttribute("role", "application");
    this.setAttribute("aria-roledescription", "chart");
    this.append(this.note);
    this.note.setAttribute("role", "status");
    this.addEventListener("keydown", this.onKey);
    this.addEventListener("blur", this.onBlur);
    this.resize.observe(this);
    this.theme.observe(document.documentElement, { attributeFilter: ["data-bs-theme"] });
    this.ignoreSettings = settings.onChange(({ kind, chart }) => {
      if (this.key && (kind === "all" || (kind === "axes" && this.follows(chart)))) this.rebuild();
    });
    this.stop = this.job ? follow(this.job, cursorOfPage(), (events) => this.onEvents(events)) : () => {};
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
    this.ignoreSettings();
    this.removeEventListener("keydown", this.onKey);
    this.removeEventListener("blur", this.onBlur);
    this.resize.disconnect();
    this.theme.disconnect();
    this.clear();
    this.note.remove();
  }

  clear() {
    tip.hide(this);
    this.chart?.destroy();
    this.chart = null;
    this.legend?.remove();
    this.legend = null;
  }

  /** Draw again from the start, because the lines, the colours or the axes changed. */
  rebuild() {
    this.clear();
    const picture = this.picture();
    if (!picture) return;
    const options = this.options(picture);
    this.chart = new uPlot(options, /** @type {AlignedData} */ (picture.columns), this);
    this.chart.over.addEventListener("mouseup", (event) => this.onRelease(event));
    this.legend = legendOf(this.chart, picture.legend);
    if (this.legend) this.append(this.legend);
    this.append(this.note);
  }

  /**
   * Act on a click; the second one of two shows the whole x axis again.
   *
   * The browser reports neither click nor double click if the chart was drawn again meanwhile, but counts the clicks.
   * @param {MouseEvent} event
   */
  onRelease({ button, clientX, detail: clicks }) {
    if (button !== 0 || Math.abs(clientX - pressed) >= LEAST_DRAG) return;
    this.clicked();
    if (clicks === 2 && this.key) settings.set(this.keyOf("x"), { xrange: null });
  }

  fitWidth() {
    // A hidden chart, in whose place a table is shown, has no width.
    if (this.chart && this.clientWidth) this.chart.setSize({ width: this.clientWidth, height: this.chart.height });
  }

  /**
   * Set the height of the plot in pixels.
   * @param {number} height
   */
  resizeTo(height) {
    if (this.height === height) return;
    this.height = height;
    this.chart?.setSize({ width: this.chart.width, height });
  }

  /**
   * @param {Drawing} drawing
   * @returns {Options}
   */
  options({ series, across, more = {} }) {
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--tblr-secondary").trim();
    const rule = style.getPropertyValue("--ty-line").trim();
    const [x, y] = [this.scale("x"), this.scale("y")];
    const axis = {
      stroke: ink,
      grid: { stroke: rule, width: 1 },
      ticks: { stroke: rule, width: 1 },
      font: "11px Inter, sans-serif",
    };
    const values = (/** @type {uPlot} */ _, /** @type {(number | null)[]} */ marks) => marks.map(formatMark);
    return {
      width: Math.max(this.clientWidth, 200),
      legend: { show: false },
      ...more,
      scales: {
        x: { time: false, distr: x.log ? 3 : 1, range: (_, low, high) => horizontal(low, high, x) },
        y: { distr: y.log ? 3 : 1, range: (_, low, high) => this.heights(low, high, y) },
      },
      axes: [
        { ...axis, ...(across ?? (x.log ? { values } : { incrs: WHOLE })) },
        { ...axis, size: 56, values },
      ],
      cursor: {
        points: { size: 6 },
        focus: { prox: 24 },
        drag: { x: true, y: false, setScale: !this.key },
        ...more.cursor,
      },
      series: [
        {},
        ...series.map((each) => ({
          width: 1.75,
          spanGaps: true,
          points: { ...LONE, fill: /** @type {string} */ (each.stroke) },
          ...each,
        })),
      ],
      hooks: {
        setCursor: [(chart) => this.showTip(chart)],
        setSelect: [(chart) => this.dragged(chart)],
        ...more.hooks,
      },
      height: this.height,
    };
  }

  /**
   * Return the range of the y axis for values from low to high.
   * @param {number | null} low
   * @param {number | null} high
   * @param {Scale} scale
   * @returns {[number | null, number | null]}
   */
  heights(low, high, scale) {
    if (low === null || high === null) return [scale.low ?? null, scale.high ?? null];
    const [least, most] = [scale.low ?? low, scale.high ?? high];
    const [from, to] = scale.log
      ? uPlot.rangeLog(Math.max(least, Number.MIN_VALUE), Math.max(most, Number.MIN_VALUE), 10, false)
      : uPlot.rangeNum(least, most, 0.1, true);
    return [scale.low ?? from, scale.high ?? to];
  }

  /**
   * Turn a drag across the chart into the range of its x axis.
   * @param {uPlot} chart
   */
  dragged(chart) {
    const range = draggedRange(chart);
    if (!range || !this.key) return;
    chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    settings.set(this.keyOf("x"), { xrange: range.map((end) => String(Number(end.toPrecision(6)))).join("..") });
  }

  /** @param {uPlot} chart */
  showTip(chart) {
    const { left = -1, top = -1, idx } = chart.cursor;
    const text = left >= 0 && idx !== null && idx !== undefined ? this.textAt(chart, idx) : null;
    if (!text) {
      tip.hide(this);
      return;
    }
    const plot = chart.over.getBoundingClientRect();
    tip.show(this, plot.left + left, plot.top + top, text);
  }

  onBlur = () => {
    this.at = undefined;
    this.chart?.setCursor({ left: -10, top: -10 });
  };

  onKey = (/** @type {KeyboardEvent} */ event) => {
    if (event.target !== this || event.ctrlKey || event.metaKey || event.altKey || !this.places) return;
    if (!this.press(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  /**
   * Act on a key; return whether it has a meaning here.
   * @param {KeyboardEvent} event
   */
  press({ key }) {
    const step = key === "ArrowRight" ? 1 : key === "ArrowLeft" ? -1 : 0;
    const last = this.places - 1;
    if (step) this.at = Math.min(Math.max((this.at ?? (step > 0 ? -1 : last + 1)) + step, 0), last);
    else if (key === "Home") this.at = 0;
    else if (key === "End") this.at = last;
    else return false;
    this.go(this.at);
    return true;
  }
}
