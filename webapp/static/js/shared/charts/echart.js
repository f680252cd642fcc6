// One ECharts picture that follows the theme, fits its width and can be read by keyboard: arrows go from one item
// to the next, x selects its trial, Enter opens it, and a line below describes it.

/** @import { ECElementEvent, EChartsType } from "echarts" */
/** @import { ColourScale, Item, Picture as Drawing } from "./types.js" */
/** @import { TipText } from "../charts/tip.js" */
import { tip } from "../charts/tip.js";
import { el } from "../dom.js";
import { number } from "../words.js";

/** @type {Promise<typeof import("../../../vendor/echarts-6.1.0/echarts.esm.min.js")> | null} */
let library = null;
/** @type {Record<string, number>} */
const STEPS = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

/** @typedef {{ x: number, y: number, width: number, height: number, clone: () => Rect, applyTransform: (by?: number[]) => void }} Rect */
/** @typedef {{ transform?: number[], getBoundingRect: () => Rect }} Shape */
/** @typedef {{ getModel: () => { getSeriesByIndex: (at: number) => { getData: () => { getItemGraphicEl: (at: number) => Shape | undefined } } } }} Inner */

export class Picture {
  /** @type {EChartsType | null} */
  chart = null;
  /** @type {Item[] | null} */
  listed = null;
  /** @type {() => Item[]} */
  list = () => [];
  /** @type {Drawing["tip"]} */
  describe = () => ({ title: "", rows: [] });
  /** @type {Drawing["tipOfAxis"]} */
  describeAxis;
  /** @type {Drawing["fitted"]} */
  fitted;
  tips = true;
  at = -1;
  height = 0;

  /** @param {Record<"pick" | "open", (trial: number) => void>} actions */
  constructor({ pick, open }) {
    this.pick = pick;
    this.open = open;
    this.canvas = el("div", {
      class: "ty-echart",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "chart",
      keydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      blur: () => this.leave(),
    });
    this.status = el("p", { class: "ty-chart-status", role: "status" });
    this.scale = el("div", { class: "ty-scale", role: "img", hidden: true });
    this.element = el("div", {}, el("div", { class: "ty-chart-scroll" }, this.canvas), this.scale, this.status);
    this.resize = new ResizeObserver(([{ contentRect }]) => this.fit(contentRect));
    this.resize.observe(this.canvas);
  }

  /**
   * @param {Drawing} drawing
   * @param {number} height in pixels
   */
  async draw(drawing, height) {
    library ??= import("../../../vendor/echarts-6.1.0/echarts.esm.min.js");
    const echarts = await library;
    if (!this.element.isConnected) return;
    this.canvas.style.minWidth = drawing.least ? `${drawing.least}px` : "";
    const grown = this.grow(height) && this.chart !== null;
    this.chart ??= echarts.init(this.canvas, null, { renderer: "canvas" });
    const { chart } = this;
    this.listed = null;
    this.list = drawing.items;
    this.describe = drawing.tip;
    this.describeAxis = drawing.tipOfAxis;
    this.fitted = drawing.fitted;
    this.tips = drawing.tips ?? true;
    this.at = -1;
    this.canvas.setAttribute("aria-label", `${drawing.label} Use the arrow keys.`);
    chart.off();
    this.show(chart, drawing, grown);
    this.showScale(drawing.scale ?? null);
    chart.on("click", ({ seriesIndex = -1, dataIndex }) => this.chosen(seriesIndex, dataIndex));
    chart.on("mousemove", (event) => this.hover(event));
    chart.on("mouseout", () => tip.hide(this));
    tip.hide(this);
    drawing.ready?.(chart);
    this.status.textContent = "";
    this.element.dataset.drawn = String(Number(this.element.dataset.drawn ?? 0) + 1);
  }

  /**
   * Follow the size of the page.
   * @param {DOMRectReadOnly} size
   */
  fit({ width, height }) {
    const { chart, fitted } = this;
    if (!chart || !width || (Math.round(width) === chart.getWidth() && Math.round(height) === chart.getHeight()))
      return;
    if (fitted) chart.setOption(fitted(width), { lazyUpdate: true });
    chart.resize();
  }

  /** @param {ColourScale | null} scale */
  showScale(scale) {
    this.scale.hidden = !scale;
    if (!scale) return;
    const [low, high] = scale.range.map((end) => number(end, 3));
    const ramp = el("span", { class: "ty-scale-ramp" });
    ramp.style.background = `linear-gradient(to right, ${scale.steps.join()})`;
    const end = (/** @type {string} */ text) => el("span", { class: "ty-num" }, text);
    this.scale.setAttribute("aria-label", `Colours: ${scale.label} from ${low} to ${high}`);
    this.scale.replaceChildren(end(low), ramp, end(high), el("span", { class: "ty-elide" }, scale.label));
  }

  /**
   * Set the height; return whether it has changed.
   * @param {number} height
   */
  grow(height) {
    if (this.height === height) return false;
    this.height = height;
    this.canvas.style.height = `${height}px`;
    return true;
  }

  /**
   * Draw once, although each of these steps would draw by itself.
   * @param {EChartsType} chart
   * @param {Drawing} drawing
   * @param {boolean} grown
   */
  show(chart, { option, prepare, fitted }, grown) {
    const later = Boolean(grown || prepare || fitted);
    chart.setOption(
      {
        animation: false,
        textStyle: { fontFamily: "Inter, sans-serif" },
        ...option,
      },
      { notMerge: true, lazyUpdate: later },
    );
    if (fitted) chart.setOption(fitted(grown ? this.canvas.clientWidth : chart.getWidth()), { lazyUpdate: true });
    prepare?.(chart);
    if (grown) chart.resize();
    else if (later) chart.setOption({});
    if (grown) chart.getZr().flush();
  }

  /** The items that the keyboard can reach. Their sentences, thousands of them, are made at the first key. */
  get items() {
    this.listed ??= this.list();
    return this.listed;
  }

  /**
   * @param {number} series
   * @param {number} data
   */
  chosen(series, data) {
    const at = this.items.findIndex((item) => item.series === series && item.data === data);
    if (at < 0) return;
    this.go(at);
    const { trial } = this.items[at];
    if (trial) this.pick(trial);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = STEPS[event.key];
    const last = this.items.length - 1;
    if (event.ctrlKey || event.metaKey || event.altKey || last < 0) return;
    const trial = this.items[this.at]?.trial;
    if (step) this.go(Math.min(Math.max(this.at + step, 0), last));
    else if (event.key === "Home") this.go(0);
    else if (event.key === "End") this.go(last);
    else if (event.key === "x" && trial) this.pick(trial);
    else if (event.key === "Enter" && trial) this.open(trial);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {ECElementEvent} event */
  hover({ seriesIndex, dataIndex, event, targetType, componentIndex }) {
    if (!event) return;
    const { offsetX: x, offsetY: y } = event;
    if (seriesIndex !== undefined) this.showTip(x, y, this.describe({ seriesIndex, dataIndex }));
    else if (targetType === "axisName" && this.describeAxis) this.showTip(x, y, this.describeAxis(componentIndex));
  }

  /**
   * @param {number} x in the chart
   * @param {number} y
   * @param {TipText} text
   */
  showTip(x, y, text) {
    const { left, top } = this.canvas.getBoundingClientRect();
    tip.show(this, left + x, top + y, text);
  }

  /**
   * Return the middle of an item in the chart. ECharts has no public way to ask for it.
   * @param {number} series
   * @param {number} data
   */
  placeOf(series, data) {
    const chart = /** @type {Inner} */ (/** @type {unknown} */ (this.chart));
    const shape = chart.getModel().getSeriesByIndex(series).getData().getItemGraphicEl(data);
    if (!shape) return null;
    const rect = shape.getBoundingRect().clone();
    rect.applyTransform(shape.transform);
    return [rect.x + rect.width / 2, rect.y + rect.height / 2];
  }

  /** @param {number} at */
  go(at) {
    this.leave();
    this.at = at;
    const { series, data, text, trial } = this.items[at];
    this.chart?.dispatchAction({ type: "highlight", seriesIndex: series, dataIndex: data });
    // A line over many axes has no one place for a tip; the sentence below has the same text.
    const [x, y] = (this.tips && this.placeOf(series, data)) || [];
    if (x !== undefined) this.showTip(x, y, this.describe({ seriesIndex: series, dataIndex: data }));
    this.status.textContent = `${text}${trial ? " (x selects it, Enter opens it)" : ""}`;
  }

  leave() {
    const item = this.at >= 0 ? this.items[this.at] : null;
    if (!item || !this.chart) return;
    this.chart.dispatchAction({ type: "downplay", seriesIndex: item.series, dataIndex: item.data });
    tip.hide(this);
  }
}
