// One chart of a grid: its heading, its drawing, and, when it is enlarged, its controls and its table.

/** @import { Missing, Picture as PictureDrawing, Table } from "./types.js" */
/** @import { Offer } from "./axes.js" */
/** @import { Select } from "./controls.js" */
import { el, empty, icon, setText } from "../dom.js";
import { grouped } from "../words.js";
import { Controls } from "./controls.js";
import { Picture } from "./echart.js";
import { addressOf, settings } from "./settings.js";

const ROWS = 300; // of the table of a chart
const SMALL = 230; // pixels
const LARGE = 420;

/** An element that draws itself in a given height. @typedef {HTMLElement & { resizeTo?: (height: number) => void }} Sized */
/** A chart as an ECharts picture, or as an element that draws itself. */
/** @typedef {{ note?: string, foot?: string, table: () => Table } & (PictureDrawing | { element: Sized })} Drawing */
/** @typedef {{ drawing: Drawing, selects: Select[], offer: Offer } | { missing: Missing, selects: Select[] } | { loading: string }} Content */

export class Tile {
  /** It must be drawn again before it is looked at. */
  dirty = true;
  /** It is on the screen, or near. */
  visible = false;
  /** A brush of this chart is changing the filters, and shows them already. */
  brushing = false;
  heading = el("h2", { class: "card-title" });
  note = el("span", { class: "text-secondary ty-small ty-elide", "data-note": true });
  toggle = el("button", { type: "button", class: "btn btn-sm", hidden: true }, icon("table"), "Table");
  body = el("div", { class: "ty-chart-body" });
  foot = el("p", { class: "text-secondary ty-small ty-chart-foot" });
  /** @type {Picture | null} */
  picture = null;
  /** The table of the last drawing, kept so that its focus and scroll position stay. @type {HTMLElement | null} */
  table = null;
  /** Return the content of the table. @type {() => Table} */
  figures = () => ({ head: [], rows: [] });

  /** @param {{ id: string, title: string, wide?: boolean }} chart */
  constructor({ id, title, wide = false }) {
    this.id = id;
    this.title = title;
    this.controls = new Controls(id);
    this.heading.textContent = title;
    this.size = el("a", { class: "btn btn-sm ty-tile-link", "data-enlarge": id });
    this.size.addEventListener("click", (event) => this.resize(event));
    this.toggle.addEventListener("click", () => settings.readAsTable(!settings.asTable));
    this.element = el(
      "section",
      { class: `card ty-tile${wide ? " ty-tile-wide" : ""}`, "aria-label": title, "data-chart": id },
      el(
        "div",
        { class: "card-header" },
        this.heading,
        this.note,
        el("div", { class: "card-actions" }, this.toggle, this.size),
      ),
      this.controls.element,
      this.body,
      this.foot,
    );
    this.body.addEventListener("ty:rows", () => {
      if (this.table?.isConnected) this.fillTable(this.table);
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.enlarged) this.resize(event);
    });
  }

  get enlarged() {
    return settings.enlarged === this.id;
  }

  /**
   * Return what to show now. Subclasses implement it.
   * @returns {Content}
   */
  content() {
    return { loading: "" };
  }

  /** @param {number} _trial */
  pick(_trial) {}

  /** @param {number} _trial */
  open(_trial) {}

  /** @param {MouseEvent | KeyboardEvent} event */
  resize(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window
    event.preventDefault();
    settings.enlarge(this.enlarged ? null : this.id);
  }

  draw() {
    this.dirty = false;
    this.drawFrame();
    const content = this.content();
    if ("loading" in content) {
      this.setBody(el("p", { class: "ty-loading text-secondary" }, content.loading));
      return;
    }
    const isMissing = "missing" in content;
    if (this.enlarged) this.controls.draw(content.selects, isMissing ? {} : content.offer);
    else this.controls.clear();
    setText(this.note, isMissing ? "" : (content.drawing.note ?? ""));
    this.note.title = this.note.textContent;
    setText(this.foot, isMissing || !this.enlarged ? "" : (content.drawing.foot ?? ""));
    if (isMissing) this.setBody(empty(content.missing.title, content.missing.hint, "chart-dots"));
    else if (this.enlarged && settings.asTable) this.drawTable(content.drawing);
    else this.drawChart(content.drawing);
  }

  /** Show whether the chart is enlarged. */
  drawFrame() {
    const { enlarged, element, size, toggle } = this;
    element.classList.toggle("ty-enlarged", enlarged);
    element.setAttribute("aria-busy", "false");
    size.href = addressOf(enlarged ? null : this.id);
    const label = enlarged ? "Show all charts" : `Enlarge ${this.title}`;
    if (size.title !== label) {
      size.title = label;
      size.setAttribute("aria-label", label);
      size.replaceChildren(icon(enlarged ? "layout-grid" : "arrows-maximize"));
    }
    toggle.hidden = !enlarged;
    toggle.setAttribute("aria-pressed", String(settings.asTable));
    toggle.classList.toggle("active", settings.asTable);
  }

  /** @param {Drawing} drawing */
  drawChart(drawing) {
    const wanted = "option" in drawing ? (drawing.height ?? LARGE) : LARGE;
    const height = this.enlarged ? wanted : Math.min(wanted, SMALL);
    if ("element" in drawing) {
      drawing.element.hidden = false;
      this.setBody(drawing.element);
      drawing.element.resizeTo?.(height);
      return;
    }
    // Kept, because a new one sets up everything again.
    this.picture ??= new Picture({ pick: (trial) => this.pick(trial), open: (trial) => this.open(trial) });
    this.setBody(this.picture.element);
    this.picture.draw(drawing, height);
  }

  /**
   * Show the figures as a table. An element that draws itself stays on the page: there it follows its job.
   * @param {Drawing} drawing
   */
  drawTable(drawing) {
    this.table ??= el("div", {
      class: "table-responsive ty-chart-table",
      tabindex: "0",
      role: "region",
      "aria-label": `${this.title} as a table`,
    });
    this.figures = drawing.table;
    if ("element" in drawing) {
      drawing.element.hidden = true;
      this.setBody(this.table, drawing.element);
    } else this.setBody(this.table);
    this.fillTable(this.table);
  }

  /** @param {HTMLElement[]} elements */
  setBody(...elements) {
    const { children } = this.body;
    if (children.length !== elements.length || elements.some((element, at) => children[at] !== element))
      this.body.replaceChildren(...elements);
  }

  /** @param {HTMLElement} table */
  fillTable(table) {
    const { head, rows, note } = this.figures();
    const cells = (/** @type {(string | number)[]} */ row) =>
      row.map((value, index) => el("td", { class: index && head[index].num ? "num" : null }, String(value ?? "–")));
    const names = head.map(({ label, num }) => el("th", { scope: "col", class: num ? "num" : null }, label));
    const lines = rows.slice(0, ROWS).map((row) => el("tr", {}, cells(row)));
    const cut = `The first ${ROWS} of ${grouped(rows.length)} rows; all are in the CSV.`;
    const notes = [note, rows.length > ROWS ? cut : ""].filter(Boolean).join(" ");
    table.replaceChildren(
      el("table", { class: "table" }, el("thead", {}, el("tr", {}, names)), el("tbody", {}, lines)),
      notes ? el("p", { class: "text-secondary ty-small ty-chart-foot" }, notes) : "",
    );
  }
}
