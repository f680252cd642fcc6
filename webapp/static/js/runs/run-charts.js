// <ty-run-charts job [trial] names='[["loss", "val_loss"], ["lr"]]'>: the curves of one training as a grid, one chart for each metric
// with its validation metric. Each chart follows the job by itself.

import { Grid } from "../shared/charts/grid.js";
import { Tile } from "../shared/charts/tile.js";
/** @import { Content } from "../shared/charts/tile.js" */
/** @import { Curves } from "./curves.js" */
import { el } from "../shared/dom.js";
import { writeNames } from "../shared/names.js";
import { acrossSelect, curveOffer, curveTable, timeNote } from "./curve-chart.js";
import "./curves.js";

const FEW = 4; // charts are found without a list of links

const RETRAINING = "retrain_";

/**
 * Return the title of the chart of a metric.
 * @param {string} name
 */
const titleOf = (name) => (name.startsWith(RETRAINING) ? `${name.slice(RETRAINING.length)}, retraining` : name);

class RunTile extends Tile {
  /**
   * @param {string[]} names
   * @param {{ job: string | null, trial: string | null }} run
   */
  constructor(names, run) {
    const [name] = names;
    super({ id: name, title: titleOf(name) });
    this.curves = /** @type {Curves} */ (el("ty-curves", { ...run, names: writeNames(names), key: name }));
    this.curves.addEventListener("ty:unit", () => this.draw());
  }

  /**
   * @override
   * @returns {Content}
   */
  content() {
    const { curves, id } = this;
    return {
      drawing: { element: curves, foot: timeNote(id), table: () => curveTable(curves) },
      selects: [acrossSelect(id, curves)],
      offer: curveOffer(id),
    };
  }
}

class RunCharts extends HTMLElement {
  /** @type {Grid | null} */
  grid = null;

  connectedCallback() {
    if (this.grid) return; // only moved
    const run = { job: this.getAttribute("job"), trial: this.getAttribute("trial") };
    /** @type {string[][]} */
    const pairs = JSON.parse(this.getAttribute("names") ?? "[]");
    this.grid = new Grid(pairs.map((names) => new RunTile(names, run)));
    if (pairs.length > FEW) this.append(this.grid.nav);
    this.append(this.grid.element);
    this.grid.invalidate();
  }

  disconnectedCallback() {
    queueMicrotask(() => {
      if (!this.isConnected) this.grid?.end(); // an element that was only moved is connected again by now
    });
  }
}

customElements.define("ty-run-charts", RunCharts);
