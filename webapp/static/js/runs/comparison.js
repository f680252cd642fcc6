// <ty-comparison query names='["val_loss", …]' numbers>: the learning curves of jobs, experiments and versions in one chart.

import { address } from "../shared/addresses.js";
import { isTimed } from "../shared/charts/axes.js";
import { Controls } from "../shared/charts/controls.js";
import { settings } from "../shared/charts/settings.js";
import { el, setText } from "../shared/dom.js";
import { acrossSelect, curveOffer, timeNote } from "./curve-chart.js";
import { CurveLines } from "./curve-lines.js";
import { measuredPoints } from "./curve-points.js";
import { Curves } from "./curves.js";

/** @import { Line } from "./curve-looks.js" */
/** @import { MetricSeries } from "./curve-points.js" */

const CHART = "compared";

/** @typedef {MetricSeries & { subject: string, place: number }} ComparedSeries */

export class ComparedLines extends CurveLines {
  /**
   * @override
   * @param {MetricSeries[]} stored
   */
  read(stored) {
    this.byLabel.clear();
    this.total = this.shown = 0;
    for (const series of /** @type {ComparedSeries[]} */ (stored)) {
      const { subject, place, name, job, trial, execution } = series;
      const source = `${place + 1} ${subject}`;
      /** @type {Line} */
      const line = { name, job, trial, execution, source, points: new Map() };
      for (const [x, point] of measuredPoints(series)) line.points.set(x, point);
      this.byLabel.set(execution ? `${source} #${execution}` : source, line);
      this.unit = series.x;
      this.total += series.total_points;
      this.shown += series.points.length;
    }
  }

  /** In the order of the comparison, in which the server sends them. @override */
  get ordered() {
    return [...this.byLabel];
  }
}

class ComparedCurves extends Curves {
  /** @override */
  begin() {
    const name = this.getAttribute("names") ?? "";
    this.setAttribute("aria-label", `Curves of ${name}. Use the arrow keys.`);
    this.load(new ComparedLines({ job: 0, names: [name], trial: null, title: null }));
  }

  /** @override */
  sourceOf() {
    const query = new URLSearchParams(this.getAttribute("query") ?? "");
    query.set("name", this.getAttribute("names") ?? "");
    return address(`/api/v1/comparison/curves?${query}`);
  }
}

class Comparison extends HTMLElement {
  drawn = "";
  controls = new Controls(CHART);
  body = el("div", { class: "card-body" });
  foot = el("p", { class: "text-secondary ty-small ty-chart-foot" });
  ignore = () => {};

  connectedCallback() {
    if (this.body.isConnected) return; // only moved
    this.append(this.controls.element, this.body, this.foot);
    this.ignore = settings.onChange(({ kind, chart }) => {
      if (kind === "all" || (kind === "axes" && chart === CHART)) this.draw();
    });
    this.draw();
  }

  disconnectedCallback() {
    queueMicrotask(() => {
      if (!this.isConnected) this.ignore();
    });
  }

  draw() {
    /** @type {string[]} */
    const names = JSON.parse(this.getAttribute("names") ?? "[]");
    const options = names.map((name) => ({ value: name, label: name }));
    const wanted = settings.get(CHART, "metric");
    const metric = names.find((name) => name === wanted) ?? names[0];
    if (this.drawn !== metric) {
      this.drawn = metric;
      const query = this.getAttribute("query") ?? "";
      this.body.replaceChildren(el("ty-compared-curves", { query, names: metric, key: CHART, final: "" }));
    }
    const named = { name: "metric", label: "Metric", options, value: metric };
    this.controls.draw([named, acrossSelect(CHART, {})], curveOffer(CHART));
    setText(this.foot, isTimed(CHART) ? timeNote(CHART) : "");
  }
}

customElements.define("ty-compared-curves", ComparedCurves);
customElements.define("ty-comparison", Comparison);
