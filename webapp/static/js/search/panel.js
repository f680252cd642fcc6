// <ty-charts job>: all charts of a search as a grid, with the filters and the selection that they share.

import { address } from "../shared/addresses.js";
import { hidesOutliers, scaleOf } from "../shared/charts/axes.js";
import { Grid } from "../shared/charts/grid.js";
import { settings } from "../shared/charts/settings.js";
import { Tile } from "../shared/charts/tile.js";
/** @import { Content } from "../shared/charts/tile.js" */
/** @import { Chart, Scene } from "./types.js" */
/** @import { ChangeKind, View } from "./view.js" */
import { go } from "../shared/connection/guard.js";
import { el } from "../shared/dom.js";
import { CHARTS } from "./charts/all.js";
import { Chips } from "./chips.js";
import { look } from "./look.js";
import { viewOf } from "./view.js";

const HINT = "All charts and the table share the filters and the selection: click a trial to select it.";
const NARROW = 600; // pixels: no room for a scale of colours beside a chart

class SearchTile extends Tile {
  /**
   * @param {Chart} chart
   * @param {Charts} panel
   */
  constructor(chart, panel) {
    super(chart);
    this.chart = chart;
    this.panel = panel;
  }

  /**
   * @override
   * @returns {Content}
   */
  content() {
    const { chart } = this;
    const { store } = this.panel.view;
    if (!store.ready)
      return { loading: store.failed ? "The trials could not be loaded; reload the page." : "Loading the trials …" };
    const scene = this.scene();
    const selects = (chart.controls ?? []).map(({ name, label, options }) => ({
      name,
      label,
      options: options(scene),
      value: scene.axes[name] ?? "",
    }));
    const missing = chart.missing(scene);
    if (missing) return { missing, selects };
    for (const axis of /** @type {const} */ (["x", "y"])) this.controls.logFirst[axis] = isLogarithmic(scene, axis);
    return { drawing: chart.draw(scene), selects, offer: chart.offer?.(scene) ?? {} };
  }

  /** Return the data and the look that the chart is drawn with. */
  scene() {
    const { chart, panel } = this;
    const { view } = panel;
    const scale = (/** @type {"x" | "y" | "z"} */ axis) => scaleOf(chart.id, axis);
    const compact = !this.enlarged;
    /** @type {Scene} */
    const scene = {
      job: panel.job,
      view,
      store: view.store,
      colours: look(),
      compact,
      narrow: compact || panel.width < NARROW,
      again: () => panel.grid.invalidate([this]),
      tile: this,
      axes: {},
      scales: { x: scale("x"), y: scale("y"), z: scale("z") },
      hidesOutliers: hidesOutliers(chart.id, "hidden"),
    };
    for (const control of chart.controls ?? []) {
      const options = control.options(scene);
      const wanted = settings.get(chart.id, control.name);
      const chosen =
        options.find(({ value }) => value === wanted) ??
        options.find(({ value }) => value === control.first?.(scene)) ??
        options[0];
      if (chosen) scene.axes[control.name] = chosen.value;
    }
    return scene;
  }

  /**
   * @override
   * @param {number} trial
   */
  pick(trial) {
    this.panel.view.toggleSelected(trial);
  }

  /**
   * @override
   * @param {number} trial
   */
  open(trial) {
    go(address(`/jobs/${this.panel.job}/trials/${trial}`));
  }
}

class Charts extends HTMLElement {
  job = 0;
  width = 0;
  /** @type {View} */
  view;
  /** @type {Grid} */
  grid;
  /** @type {Chips} */
  chips;

  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.chips = new Chips(this.view);
    this.grid = new Grid(CHARTS.map((chart) => new SearchTile(chart, this)));
    const hint = el("span", { class: "text-secondary ty-small" }, HINT);
    const shared = el("div", { class: "card ty-chart-shared" }, this.chips.element, hint);
    this.append(this.grid.nav, shared, this.grid.element);
    this.view.onChange((kind) => this.changed(kind));
    this.width = this.clientWidth; // kept: reading it again would lay out the page before a chart is drawn
    new ResizeObserver(([{ contentRect }]) => (this.width = contentRect.width)).observe(this);
    this.changed("all");
  }

  /** @param {ChangeKind} kind */
  changed(kind) {
    if (["sort", "page", "columns", "compare", "progress"].includes(kind)) return;
    if (this.view.store.ready) this.chips.draw(this.view.rows().length);
    this.grid.invalidate(this.grid.tiles.filter(({ brushing }) => !(brushing && kind === "filter")));
  }
}

/**
 * Return whether an axis is logarithmic unless someone chooses: it is if its hyperparameter is sampled so.
 * @param {Scene} scene
 * @param {"x" | "y"} axis
 */
function isLogarithmic({ axes, store, tile }, axis) {
  const column = store.columns.get(axes[axis] ?? "");
  return tile.id !== "pareto" && column?.log === true;
}

customElements.define("ty-charts", Charts);
