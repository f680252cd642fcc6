// <ty-charts job>: one chart of the search at a time, chosen by name; its axes, its table, and what it needs.

import { CHARTS } from "./charts/all.js";
import { choice, el, empty, icon, say } from "./dom.js";
import { Picture } from "./echart.js";
import { look } from "./look.js";
import { viewOf } from "./view.js";
import { grouped, trials } from "./words.js";

const ROWS = 300;

class Charts extends HTMLElement {
  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.nav = el(
      "nav",
      { class: "ty-chart-nav", "aria-label": "Charts" },
      CHARTS.map((chart) => this.link(chart)),
    );
    this.heading = el("h2", { class: "card-title" });
    this.note = el("span", { class: "text-secondary ty-small", "data-note": true });
    this.toggle = el(
      "button",
      { type: "button", class: "btn btn-sm", click: () => this.view.readAsTable(!this.view.asTable) },
      icon("table"),
      "Table",
    );
    this.controls = el("div", { class: "ty-chart-controls" });
    this.body = el("div", { class: "ty-chart-body" });
    this.foot = el("p", { class: "text-secondary ty-small ty-chart-foot" });
    const head = el(
      "div",
      { class: "card-header" },
      this.heading,
      this.note,
      el("div", { class: "card-actions" }, this.toggle),
    );
    this.card = el("section", { class: "card", "aria-label": "Chart" }, head, this.controls, this.body, this.foot);
    this.append(this.nav, this.card);
    this.view.addEventListener("change", (event) => this.changed(event.what));
    document.addEventListener("ty:theme", () => this.draw());
    this.width = this.clientWidth; // asked again, it would have the page laid out before a chart is drawn
    new ResizeObserver(([{ contentRect }]) => (this.width = contentRect.width)).observe(this);
    this.open = (trial) => location.assign(`/jobs/${this.job}/trials/${trial}`);
    this.draw();
  }

  get chart() {
    return CHARTS.find(({ id }) => id === this.view.chart) ?? CHARTS[0];
  }

  changed(what) {
    if (["sort", "page", "columns", "compare", "progress"].includes(what)) return;
    if (this.brushing && what === "filter") return; // its own brush shows it already
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    const { chart, view } = this;
    const { store } = view;
    this.drawNav();
    say(this.heading, chart.title);
    this.toggle.setAttribute("aria-pressed", String(view.asTable));
    this.toggle.classList.toggle("active", view.asTable);
    if (!store.ready) {
      this.say(
        store.failed
          ? empty("The trials could not be loaded", "Reload the page to try again.", "plug-connected-x")
          : el("p", { class: "ty-loading text-secondary" }, "Loading the trials …"),
      );
      return;
    }
    const scene = this.scene(chart);
    this.drawControls(chart, scene);
    const missing = chart.missing?.(scene);
    const drawing = missing ? null : chart.draw(scene);
    say(this.note, drawing?.note ?? "");
    say(this.foot, drawing?.foot ?? "");
    if (!drawing) this.say(empty(missing.title, missing.hint, "chart-dots"));
    else if (view.asTable) this.say(this.asTable(drawing.table()));
    else if (drawing.element) this.say(drawing.element);
    else this.drawPicture(drawing);
  }

  /** What a chart draws from: trials, filters, its axes, colours, and a way to ask to be drawn again. */
  scene(chart) {
    const { view } = this;
    const scene = {
      job: this.job,
      view,
      store: view.store,
      colours: look(),
      narrow: this.width < 600,
      again: () => this.draw(),
      panel: this,
    };
    scene.axes = {};
    for (const control of chart.controls ?? []) {
      const options = control.options(scene);
      const wanted = view.axes.get(control.name);
      const chosen =
        options.find(({ value }) => value === wanted) ??
        options.find(({ value }) => value === control.first?.(scene)) ??
        options[0];
      scene.axes[control.name] = chosen?.value;
    }
    return scene;
  }

  link({ id, title }) {
    const go = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.view.show(id);
    };
    return el("a", { href: `?${new URLSearchParams({ tab: "charts", chart: id })}`, click: go }, title);
  }

  /** The links stay as they were made, and so does the focus on one of them. */
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
    this.controls.querySelectorAll("select").forEach((select, at) => (select.value = scene.axes[offered[at].name]));
  }

  drawPicture(drawing) {
    this.picture ??= new Picture({ pick: (trial) => this.view.pick(trial), open: this.open }); // kept: a fresh one sets up everything anew
    this.say(this.picture.element);
    this.picture.draw(drawing);
  }

  say(element) {
    if (this.body.firstElementChild !== element) this.body.replaceChildren(element);
  }

  asTable({ head, rows }) {
    const cells = (row) =>
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

/** The words under a chart's name: how many trials stand behind it. */
export const behind = (shown, all) => (shown === all ? trials(shown) : `${trials(shown)} of ${grouped(all)}`);

customElements.define("ty-charts", Charts);
