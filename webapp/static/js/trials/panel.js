// <ty-charts job>: one chart of the search at a time, with its axes and its table, or the data that it still needs.

/** @import { Chart, Picture as PictureDrawing, Scene, Table } from "./types.js" */
/** @import { ChangeKind, View } from "./view.js" */
import { CHARTS } from "./charts/all.js";
import { choice, el, empty, icon, setText } from "./dom.js";
import { Picture } from "./echart.js";
import { look } from "./look.js";
import { viewOf } from "./view.js";
import { grouped } from "./words.js";

const ROWS = 300;

class Charts extends HTMLElement {
  job = 0;
  width = 0;
  frame = 0;
  /** A brush of the chart is changing the filters. */
  brushing = false;
  current = -1;
  controlsKey = "";
  nav = el("nav", { class: "ty-chart-nav", "aria-label": "Charts" });
  heading = el("h2", { class: "card-title" });
  note = el("span", { class: "text-secondary ty-small", "data-note": true });
  toggle = el("button", { type: "button", class: "btn btn-sm" });
  controls = el("div", { class: "ty-chart-controls" });
  body = el("div", { class: "ty-chart-body" });
  foot = el("p", { class: "text-secondary ty-small ty-chart-foot" });
  /** @type {Picture | null} */
  picture = null;
  /** @type {View} */
  view;

  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.nav.append(...CHARTS.map((chart) => this.link(chart)));
    this.toggle.append(icon("table"), "Table");
    this.toggle.addEventListener("click", () => this.view.readAsTable(!this.view.asTable));
    const head = el(
      "div",
      { class: "card-header" },
      this.heading,
      this.note,
      el("div", { class: "card-actions" }, this.toggle),
    );
    const card = el("section", { class: "card", "aria-label": "Chart" }, head, this.controls, this.body, this.foot);
    this.append(this.nav, card);
    this.view.onChange((kind) => this.changed(kind));
    document.addEventListener("ty:theme", () => this.draw());
    this.width = this.clientWidth; // kept: reading it again would lay out the page before a chart is drawn
    new ResizeObserver(([{ contentRect }]) => (this.width = contentRect.width)).observe(this);
    this.draw();
  }

  /** @returns {Chart} */
  get chart() {
    return CHARTS.find(({ id }) => id === this.view.chart) ?? CHARTS[0];
  }

  /** @param {ChangeKind} kind */
  changed(kind) {
    if (["sort", "page", "columns", "compare", "progress"].includes(kind)) return;
    if (this.brushing && kind === "filter") return; // the brush of the chart shows it already
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    const { chart, view } = this;
    const { store } = view;
    this.drawNav();
    setText(this.heading, chart.title);
    this.toggle.setAttribute("aria-pressed", String(view.asTable));
    this.toggle.classList.toggle("active", view.asTable);
    if (!store.ready) {
      this.setBody(
        store.failed
          ? empty("The trials could not be loaded", "Reload the page to try again.", "plug-connected-x")
          : el("p", { class: "ty-loading text-secondary" }, "Loading the trials …"),
      );
      return;
    }
    const scene = this.scene(chart);
    this.drawControls(chart, scene);
    const missing = chart.missing(scene);
    const drawing = missing ? null : chart.draw(scene);
    setText(this.note, drawing?.note ?? "");
    setText(this.foot, drawing?.foot ?? "");
    if (missing) this.setBody(empty(missing.title, missing.hint, "chart-dots"));
    if (!drawing) return;
    if (view.asTable) this.setBody(this.asTable(drawing.table()));
    else if ("element" in drawing) this.setBody(drawing.element);
    else this.drawPicture(drawing);
  }

  /**
   * Return the data and the look that a chart is drawn with.
   * @param {Chart} chart
   */
  scene(chart) {
    const { view } = this;
    /** @type {Scene} */
    const scene = {
      job: this.job,
      view,
      store: view.store,
      colours: look(),
      narrow: this.width < 600,
      again: () => this.draw(),
      panel: this,
      axes: {},
    };
    for (const control of chart.controls ?? []) {
      const options = control.options(scene);
      const wanted = view.axes.get(control.name);
      const chosen =
        options.find(({ value }) => value === wanted) ??
        options.find(({ value }) => value === control.first?.(scene)) ??
        options[0];
      if (chosen) scene.axes[control.name] = chosen.value;
    }
    return scene;
  }

  /** @param {Chart} chart */
  link({ id, title }) {
    const go = (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.view.show(id);
    };
    return el("a", { href: `?${new URLSearchParams({ tab: "charts", chart: id })}`, click: go }, title);
  }

  /** Mark the link of the current chart; the links are kept, so that the focus on one of them stays. */
  drawNav() {
    const current = CHARTS.indexOf(this.chart);
    if (this.current === current) return;
    this.current = current;
    [...this.nav.children].forEach((link, at) => {
      link.classList.toggle("active", at === current);
      if (at === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    });
  }

  /**
   * @param {Chart} chart
   * @param {Scene} scene
   */
  drawControls(chart, scene) {
    const offered = (chart.controls ?? []).map(({ name, label, options }) => ({
      name,
      label,
      options: options(scene),
    }));
    const key = JSON.stringify(offered);
    if (this.controlsKey !== key) {
      this.controlsKey = key;
      this.controls.replaceChildren(
        ...offered.map(({ name, label, options }) =>
          choice(label, options, scene.axes[name], (value) => this.view.setAxis(name, value)),
        ),
      );
    }
    this.controls.querySelectorAll("select").forEach((select, at) => {
      select.value = scene.axes[offered[at].name] ?? "";
    });
  }

  /** @param {PictureDrawing} drawing */
  drawPicture(drawing) {
    // Kept, because a new one sets up everything again.
    this.picture ??= new Picture({
      pick: (trial) => this.view.toggleSelected(trial),
      open: (trial) => location.assign(`/jobs/${this.job}/trials/${trial}`),
    });
    this.setBody(this.picture.element);
    this.picture.draw(drawing);
  }

  /** @param {HTMLElement} element */
  setBody(element) {
    if (this.body.firstElementChild !== element) this.body.replaceChildren(element);
  }

  /** @param {Table} table */
  asTable({ head, rows }) {
    const cells = (/** @type {(string | number)[]} */ row) =>
      row.map((value, index) => el("td", { class: index && head[index].num ? "num" : null }, String(value ?? "–")));
    const table = el(
      "table",
      { class: "table" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          head.map(({ label, num }) => el("th", { scope: "col", class: num ? "num" : null }, label)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.slice(0, ROWS).map((row) => el("tr", {}, cells(row))),
      ),
    );
    const cut =
      rows.length > ROWS
        ? el(
            "p",
            { class: "text-secondary ty-small ty-chart-foot" },
            `The first ${ROWS} of ${grouped(rows.length)} rows; all trials are in the CSV below.`,
          )
        : "";
    return el(
      "div",
      {
        class: "table-responsive ty-chart-table",
        tabindex: "0",
        role: "region",
        "aria-label": `${this.chart.title} as a table`,
      },
      table,
      cut,
    );
  }
}

customElements.define("ty-charts", Charts);
