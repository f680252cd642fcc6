// <ty-traffic endpoint>: the requests of an endpoint: its figures, its charts, and the versions in production, live.
// Until the first request, the page shows the content of the element, which explains how to send one.

/** @import { Offer } from "../../shared/charts/axes.js" */
/** @import { Content } from "../../shared/charts/tile.js" */
/** @import { TrafficKind } from "./figures.js" */
/** @import { TrafficChart } from "./traffic-chart.js" */
import { scaleOf } from "../../shared/charts/axes.js";
import { Grid } from "../../shared/charts/grid.js";
import { settings } from "../../shared/charts/settings.js";
import { Tile } from "../../shared/charts/tile.js";
import { choice, el, icon, setText } from "../../shared/dom.js";
import { findAll } from "../../shared/elements.js";
import { Band } from "./band.js";
import { KINDS, summaryOf } from "./figures.js";
import { RANGES, seconds, TrafficStore } from "./store.js";
import { momentWords } from "./times.js";
import { TIME } from "./traffic-chart.js";

/** @type {Offer} */
const OFFER = { scales: [{ axis: "y", label: "y axis", log: true, range: true }], smoothing: true };

class TrafficTile extends Tile {
  /**
   * @param {TrafficKind} kind
   * @param {TrafficStore} store
   */
  constructor(kind, store) {
    super(kind);
    this.unit = kind.unit;
    this.chart = /** @type {TrafficChart} */ (el("ty-traffic-chart", { key: kind.id }));
    Object.assign(this.chart, { kind, store });
  }

  /**
   * @override
   * @returns {Content}
   */
  content() {
    const { chart, unit } = this;
    return { drawing: { element: chart, note: unit, table: () => chart.table() }, selects: [], offer: OFFER };
  }
}

class TrafficElement extends HTMLElement {
  /** @type {Grid | null} */
  grid = null;
  ignore = () => {};
  figures = el("div", { class: "ty-kpis ty-traffic-figures" });
  status = el("span", { class: "text-secondary ty-small", role: "status" });
  tools = el("div", { class: "ty-traffic-tools" });
  select = el("div");
  zoomed = el("div");
  offered = "";

  connectedCallback() {
    if (this.grid) return; // only moved
    const endpoint = this.getAttribute("endpoint") ?? "";
    this.hint = el("div", {}, [...this.childNodes]);
    this.store = new TrafficStore(endpoint);
    this.band = new Band(endpoint);
    this.grid = new Grid(KINDS.map((kind) => new TrafficTile(kind, /** @type {TrafficStore} */ (this.store))));
    this.shown = el("div", { class: "ty-stack", hidden: true }, this.tools, this.figures, this.grid.element);
    this.shown.append(this.band.element);
    this.append(this.hint, this.shown);
    this.store.addEventListener("change", this.onData);
    this.ignore = settings.onChange(({ kind, chart }) => {
      if (kind === "all" || chart === TIME) this.onData();
    });
    this.store.start();
  }

  disconnectedCallback() {
    queueMicrotask(() => {
      if (this.isConnected) return; // only moved
      this.store?.stop();
      this.grid?.end();
      this.ignore();
    });
  }

  onData = () => {
    const { store, band, hint, shown } = this;
    if (!store || !band || !hint || !shown) return;
    const { data, problem } = store;
    setText(this.status, problem ? `The figures could not be loaded: ${problem}. Trying again.` : "");
    if (!data) {
      if (problem) this.append(this.status);
      return;
    }
    const isEmpty = data.since === null;
    const appeared = shown.hidden && !isEmpty;
    shown.hidden = isEmpty;
    if (isEmpty) return;
    hint.remove();
    this.drawTools();
    this.drawFigures();
    band.draw(data);
    if (appeared || settings.asTable) this.grid?.invalidate(); // a table does not follow the requests by itself
  };

  /** The controls are kept, so that the focus stays on the one in use. */
  drawTools() {
    const { store, tools } = this;
    if (!store) return;
    const versions = [...store.known].sort((a, b) => b - a).map(String);
    if (store.version && !versions.includes(store.version)) versions.push(store.version);
    if (!tools.children.length) tools.append(this.ranges(store), this.select, this.zoomed, this.status);
    for (const button of findAll(tools, "[data-range]", HTMLButtonElement)) {
      const isChosen = button.dataset.range === store.range;
      button.setAttribute("aria-pressed", String(isChosen));
      button.classList.toggle("active", isChosen);
    }
    if (this.offered !== versions.join()) {
      this.offered = versions.join();
      this.select.replaceChildren(this.versions(store, versions));
    }
    const select = this.select.querySelector("select");
    if (select) select.value = store.version;
    this.drawZoom();
  }

  /** @param {TrafficStore} store */
  ranges(store) {
    const buttons = Object.entries(RANGES).map(([range, label]) => {
      const button = el("button", { type: "button", class: "btn btn-sm", "data-range": range }, label);
      button.addEventListener("click", () => store.choose({ range }));
      return button;
    });
    return el("div", { class: "btn-group", role: "group", "aria-label": "Time" }, buttons);
  }

  /**
   * @param {TrafficStore} store
   * @param {string[]} versions
   */
  versions(store, versions) {
    const options = [
      { value: "", label: "All versions" },
      ...versions.map((version) => ({ value: version, label: `v${version}` })),
    ];
    return choice("Version", options, store.version, (version) => store.choose({ version }));
  }

  /** Show the part of the time that the charts show, with a button that shows all of it again. */
  drawZoom() {
    const { low, high } = scaleOf(TIME, "x");
    const text =
      low === undefined || high === undefined ? "" : `${momentWords(low, 1)} – ${momentWords(high, 1, true)}`;
    if (this.zoomed.dataset.text === text) return;
    this.zoomed.dataset.text = text;
    if (!text) {
      this.zoomed.replaceChildren();
      return;
    }
    const button = el(
      "button",
      { type: "button", class: "btn btn-sm", title: "Show all of the time" },
      icon("x"),
      text,
    );
    button.addEventListener("click", () => settings.set(TIME, { xrange: null }));
    this.zoomed.replaceChildren(button);
  }

  drawFigures() {
    const data = this.store?.data;
    if (!data) return;
    const cards = summaryOf(data.total);
    while (this.figures.children.length < cards.length) this.figures.append(figureCard());
    cards.forEach((texts, at) => {
      const card = this.figures.children[at];
      [".subheader", ".ty-kpi-value", ".ty-small"].forEach((part, index) => {
        const element = card.querySelector(part);
        if (element) setText(element, texts[index]);
      });
    });
    this.dataset.end = String(seconds(data.end));
  }
}

const figureCard = () =>
  el(
    "div",
    { class: "card ty-kpi" },
    el(
      "div",
      { class: "card-body" },
      el("div", { class: "subheader" }),
      el("div", { class: "ty-kpi-value ty-num" }),
      el("div", { class: "text-secondary ty-small" }),
    ),
  );

customElements.define("ty-traffic", TrafficElement);
