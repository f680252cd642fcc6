// <ty-compare job>: trials side by side, their differences, and their learning curves in one chart.
// The address names them (`?compare=1,5,9`), so that a link shows the same comparison.

import { acrossSelect, curveOffer, timeNote } from "../runs/curve-chart.js";
import { address } from "../shared/addresses.js";
/** @import { Curves } from "../runs/curves.js" */
/** @import { Column } from "./types.js" */
/** @import { Store } from "./store.js" */
/** @import { View } from "./view.js" */
import { Controls } from "../shared/charts/controls.js";
import { settings } from "../shared/charts/settings.js";
import { badge, el, icon, setText } from "../shared/dom.js";
import { find, findAll } from "../shared/elements.js";
import { writeNames } from "../shared/names.js";
import { duration, setting } from "../shared/words.js";
import { curveNames, directionOf } from "./charts/shared.js";
import { viewOf } from "./view.js";
import "../runs/curves.js";

const MOST = 12;
/** @type {[Column["kind"], string][]} */
const PARTS = [
  ["hyperparameter", "Hyperparameters"],
  ["metric", "Metrics"],
  ["fact", "Facts"],
];

/**
 * A row of the comparison. `best` is the index of the best trial in the row of a metric.
 * @typedef {{ label: string, texts: string[], best: number | null, differs: boolean }} Row
 */

class Compare extends HTMLElement {
  job = 0;
  drawn = "";
  heading = el("h2", { class: "card-title", tabindex: "-1" });
  note = el("span", { class: "text-secondary ty-small" });
  only = el("input", { type: "checkbox", class: "form-check-input" });
  controls = new Controls("compare");
  curves = el("div", { class: "card-body" });
  foot = el("p", { class: "text-secondary ty-small ty-chart-foot" });
  table = el("div", { class: "table-responsive", tabindex: "0", role: "region", "aria-label": "Trials side by side" });
  card = el("section", { class: "card ty-compare", "aria-label": "Comparison" });
  /** @type {View} */
  view;

  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.make();
    this.view.onChange((kind) => {
      if (["data", "compare", "all"].includes(kind)) this.draw();
    });
    settings.onChange(({ kind, chart }) => {
      if (kind === "axes" && chart === "compare") this.draw();
    });
    this.draw();
  }

  make() {
    const close = el("button", { type: "button", class: "btn btn-sm", click: () => this.close() }, icon("x"), "Close");
    this.only.addEventListener("change", () => this.view.compareOnlyDiffering(this.only.checked));
    const differing = el(
      "label",
      { class: "form-check" },
      this.only,
      el("span", { class: "form-check-label" }, "Only differences"),
    );
    this.card.append(
      el(
        "div",
        { class: "card-header" },
        this.heading,
        this.note,
        el("div", { class: "card-actions" }, differing, close),
      ),
      this.table,
      this.controls.element,
      this.curves,
      this.foot,
    );
  }

  close() {
    this.view.compare([]);
    find(document, "ty-trials [data-key='c']", HTMLElement).focus();
  }

  draw() {
    const { compared, store } = this.view;
    if (!compared.length || !store.ready) {
      this.replaceChildren();
      return;
    }
    const known = compared.filter((trial) => store.place.has(trial));
    const trials = known.slice(0, MOST);
    if (!this.card.isConnected) this.replaceChildren(this.card);
    this.heading.textContent = `Trials ${trials.join(", ")} side by side`;
    this.note.textContent = this.left(compared, known);
    this.only.checked = this.view.onlyDiffering;
    this.drawTable(trials);
    this.drawCurves(trials);
  }

  /**
   * @param {number[]} compared
   * @param {number[]} known
   */
  left(compared, known) {
    const missing = compared.filter((trial) => !known.includes(trial));
    const gone = missing.length ? `no trial ${missing.join(", ")} in this search; ` : "";
    return (
      gone + (known.length > MOST ? `the first ${MOST} of ${known.length}` : "differences from the first are bold")
    );
  }

  /** @param {number[]} trials */
  drawTable(trials) {
    const { store } = this.view;
    const places = trials.flatMap((trial) => store.place.get(trial) ?? []);
    const focused = document.activeElement;
    const held = focused instanceof HTMLElement && this.table.contains(focused) ? focused.dataset.remove : null;
    const head = el(
      "tr",
      {},
      el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Of")),
      trials.map((trial, at) => this.trialHead(trial, places[at])),
    );
    const bodies = PARTS.map(([kind, title]) => {
      const rows = this.rows(kind, places).filter(({ differs }) => differs || !this.view.onlyDiffering);
      const name = el("tr", {}, el("th", { scope: "rowgroup", colspan: trials.length + 1, class: "ty-part" }, title));
      return rows.length
        ? el(
            "tbody",
            {},
            name,
            rows.map((row) => line(row, kind === "hyperparameter")),
          )
        : null;
    }).filter((body) => body !== null);
    const none = bodies.length
      ? []
      : [el("tbody", {}, el("tr", {}, el("td", { colspan: trials.length + 1 }, "No differences.")))];
    this.table.replaceChildren(el("table", { class: "table" }, el("thead", {}, head), bodies, none));
    if (!held) return;
    const [button] = [`[data-remove="${held}"]`, "[data-remove]"].flatMap((selector) =>
      findAll(this.table, selector, HTMLElement),
    );
    button?.focus();
  }

  /**
   * @param {number} trial
   * @param {number} index
   */
  trialHead(trial, index) {
    const { store, compared } = this.view;
    const remove = () => this.view.compare(compared.filter((other) => other !== trial));
    return el(
      "th",
      { scope: "col", class: "num" },
      el("a", { href: address(`/jobs/${this.job}/trials/${trial}`) }, `Trial ${trial}`),
      " ",
      el(
        "button",
        {
          type: "button",
          class: "ty-icon-button",
          "data-remove": trial,
          "aria-label": `Remove trial ${trial} from the comparison`,
          click: remove,
        },
        icon("x"),
      ),
      el("div", {}, badge(store.states[store.state[index]])),
    );
  }

  /**
   * @param {Column["kind"]} kind
   * @param {number[]} places
   * @returns {Row[]}
   */
  rows(kind, places) {
    const { store } = this.view;
    const rows = store
      .of(kind)
      .filter(({ key }) => !["number", "state", "std", "seconds", "executions", "finished"].includes(key))
      .map((column) =>
        comparisonRow(
          column.label,
          places.map((index) =>
            kind === "hyperparameter" ? exact(store, column, index) : store.textWithSpread(column, index),
          ),
          kind === "metric" && !column.isSet ? this.best(column, places) : null,
        ),
      );
    if (kind !== "fact") return rows;
    const { values } = store.column("seconds");
    const executions = comparisonRow(
      "executions done",
      places.map((index) => String(store.executions[index])),
    );
    return [
      executions,
      ...rows,
      comparisonRow(
        "took",
        places.map((index) => duration(values[index])),
      ),
    ];
  }

  /**
   * Return which of some trials is best in a column; null where none is.
   * @param {Column} column
   * @param {number[]} places
   */
  best(column, places) {
    const sign = directionOf({ store: this.view.store }, column.key) === "max" ? -1 : 1;
    const costs = places.map((index) => {
      const value = column.values[index];
      return value !== null && Number.isFinite(value) ? sign * value : Infinity;
    });
    const least = Math.min(...costs);
    return Number.isFinite(least) && costs.some((cost) => cost !== least) ? costs.indexOf(least) : null;
  }

  /** @param {number[]} trials */
  drawCurves(trials) {
    const scene = { store: this.view.store };
    const options = curveNames(scene);
    const wanted = settings.get("compare", "metric");
    const metric = options.find(({ value }) => value === wanted)?.value ?? scene.store.objective.metric;
    const key = `${metric} ${trials.join()}`;
    if (this.drawn !== key) {
      this.drawn = key; // it follows the job by itself
      const shown = { job: this.job, key: "compare", names: writeNames([metric]), trials: trials.join() };
      this.curves.replaceChildren(trials.length ? el("ty-curves", shown) : "");
    }
    const [curves = null] = this.curves.children;
    const named = { name: "metric", label: "Learning curves of", options, value: metric };
    this.controls.draw(
      [named, acrossSelect("compare", /** @type {Partial<Curves>} */ (curves ?? {}))],
      curveOffer("compare"),
    );
    setText(this.foot, timeNote("compare"));
  }
}

/**
 * Return a value with enough digits to distinguish rates of 5.9e-4 and 6.2e-4.
 * @param {Store} store
 * @param {Column} column
 * @param {number} index
 */
function exact(store, column, index) {
  const value = column.values[index];
  return column.numeric && value !== null && Number.isFinite(value) ? setting(value, 6) : store.text(column, index);
}

/**
 * @param {string} label
 * @param {string[]} texts
 * @param {number | null} best
 * @returns {Row}
 */
const comparisonRow = (label, texts, best = null) => ({
  label,
  texts,
  best,
  differs: texts.some((text) => text !== texts[0]),
});

/**
 * @param {Row} row
 * @param {boolean} isMarked
 */
function line({ label, texts, best, differs }, isMarked) {
  const tag = differs && isMarked ? el("span", { class: "ty-tag" }, "differs") : "";
  const cells = texts.map((text, at) => {
    const trophy =
      at === best
        ? el(
            "span",
            { title: "best of these" },
            icon("trophy"),
            el("span", { class: "visually-hidden" }, "best of these"),
            " ",
          )
        : "";
    return el("td", { class: "num" }, trophy, isMarked && text !== texts[0] ? el("strong", {}, text) : text);
  });
  return el("tr", {}, el("th", { scope: "row" }, label, " ", tag), cells);
}

customElements.define("ty-compare", Compare);
