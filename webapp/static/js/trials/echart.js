// One ECharts picture that takes the theme, fits its width and can be walked through by keyboard: arrows go
// from one item to the next, x picks its trial, Enter opens it, and a line below says what is there.
import { el } from "./dom.js";

let library = null;
const HEIGHT = 420;

export class Picture {
  constructor({ pick, open }) {
    this.pick = pick;
    this.open = open;
    this.canvas = el("div", {
      class: "ty-echart",
      tabindex: "0",
      role: "application",
      "aria-roledescription": "chart",
      keydown: (event) => this.key(event),
      blur: () => this.leave(),
    });
    this.said = el("p", { class: "ty-chart-said", role: "status" });
    this.element = el("div", {}, this.canvas, this.said);
    this.resize = new ResizeObserver(([{ contentRect }]) => this.fit(contentRect));
    this.resize.observe(this.canvas);
  }

  /**
   * Draw `{option, items, label, height?, tips?, prepare?, ready?}`; `items()` lists {text, trial?, series, data}
   * for whoever walks through, `prepare(chart)` completes before drawing what no option can say.
   */
  async draw(drawing) {
    library ??= import("../../vendor/echarts-6.1.0/echarts.esm.min.js");
    const echarts = await library;
    if (!this.element.isConnected) return;
    const grown = this.grow(drawing.height ?? HEIGHT) && this.chart;
    this.chart ??= echarts.init(this.canvas, null, { renderer: "canvas" });
    this.listed = null;
    this.list = drawing.items;
    this.tips = drawing.tips ?? true;
    this.at = -1;
    this.canvas.setAttribute("aria-label", `${drawing.label} Use the arrow keys.`);
    this.chart.off();
    this.show(drawing, grown);
    this.chart.on("click", ({ seriesIndex, dataIndex }) => this.chosen(seriesIndex, dataIndex));
    drawing.ready?.(this.chart, echarts);
    this.said.textContent = "";
    this.element.dataset.drawn = String(Number(this.element.dataset.drawn ?? 0) + 1);
  }

  /** Follow the size of the page; the first look at an element tells only what is known. */
  fit({ width, height }) {
    const { chart } = this;
    if (chart && width && (Math.round(width) !== chart.getWidth() || Math.round(height) !== chart.getHeight()))
      chart.resize();
  }

  /** Take a height; say whether it is another one. */
  grow(height) {
    if (this.height === height) return false;
    this.height = height;
    this.canvas.style.height = `${height}px`;
    return true;
  }

  /** Draw once: each of these steps would draw by itself, and a size is only taken where it is another one. */
  show({ option, prepare }, grown) {
    const later = Boolean(grown || prepare);
    this.chart.setOption(
      { animation: false, textStyle: { fontFamily: "Inter, sans-serif" }, ...option },
      { notMerge: true, lazyUpdate: later },
    );
    prepare?.(this.chart);
    if (grown) this.chart.resize();
    else if (later) this.chart.setOption({});
    if (grown) this.chart.getZr().flush();
  }

  /** What can be walked through. Thousands of sentences are made when somebody begins to. */
  get items() {
    this.listed ??= this.list?.() ?? [];
    return this.listed;
  }

  chosen(series, data) {
    const at = this.items.findIndex((item) => item.series === series && item.data === data);
    if (at < 0) return;
    this.go(at);
    if (this.items[at].trial) this.pick(this.items[at].trial);
  }

  key(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
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

  go(at) {
    this.leave();
    this.at = at;
    const { series, data, text, trial } = this.items[at];
    this.chart.dispatchAction({ type: "highlight", seriesIndex: series, dataIndex: data });
    // A line over many axes has no one place for a tip; the sentence below says the same.
    if (this.tips) this.chart.dispatchAction({ type: "showTip", seriesIndex: series, dataIndex: data });
    this.said.textContent = `${text}${trial ? " (x picks it, Enter opens it)" : ""}`;
  }

  leave() {
    const item = this.at >= 0 && this.items[this.at];
    if (!item || !this.chart) return;
    this.chart.dispatchAction({ type: "downplay", seriesIndex: item.series, dataIndex: item.data });
    this.chart.dispatchAction({ type: "hideTip" });
  }
}

/** A tooltip drawn on the canvas: markup with styles of its own would be refused by the policy. */
export function tip(colours, tell) {
  return {
    trigger: "item",
    renderMode: "richText",
    confine: true,
    backgroundColor: colours.surface,
    borderColor: colours.line,
    textStyle: { color: colours.ink, fontSize: 12 },
    formatter: tell,
  };
}
