// <ty-trials job>: the trials that fit the filters, a page at a time, sorted by any column.
import { badge, el, empty, icon } from "./dom.js";
import { Filters } from "./filters.js";
import { relative } from "../time.js";
import { viewOf } from "./view.js";
import { duration, number } from "./words.js";

const EACH = 25;

class Trials extends HTMLElement {
  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.filters = new Filters(this.view);
    this.head = el("thead");
    this.body = el("tbody", { click: (event) => this.clicked(event) });
    this.table = el("div", { class: "table-responsive" }, el("table", { class: "table ty-trials", "data-rows": true }, this.head, this.body));
    this.foot = el("div", { class: "ty-pager" });
    this.addEventListener("ty:edge", (event) => this.turn(event.detail));
    this.view.addEventListener("change", (event) => this.draw(event.what));
    this.draw("all");
  }

  draw(what) {
    if (what === "axes" || what === "chart") return undefined;
    const { store } = this.view;
    if (!store.ready) return this.replaceChildren(store.failed ? empty("The trials could not be loaded", "Reload the page to try again.", "plug-connected-x") : el("p", { class: "ty-loading text-secondary" }, "Loading the trials …"));
    if (!store.size) return this.replaceChildren(empty("No trials yet", "The first ones appear as soon as a worker has a free slot."));
    if (!this.table.isConnected) this.replaceChildren(this.filters.element, this.table, this.foot);
    if (what === "pick") this.markPicked();
    else this.fill();
    this.filters.draw(this.view.rows().length);
    return undefined;
  }

  fill() {
    const { view } = this;
    const { store } = view;
    const rows = view.rows();
    const pages = Math.max(1, Math.ceil(rows.length / EACH));
    const page = Math.min(view.page, pages);
    const from = (page - 1) * EACH;
    this.columns = [...store.columns.values()].filter(({ key }) => key !== "seconds" && key !== "std");
    this.best = bestOf(store);
    const here = this.body.querySelector(".ty-here")?.dataset.trial;
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.trial : null;
    this.drawHead();
    this.body.replaceChildren(...rows.slice(from, from + EACH).map((index) => this.row(index)));
    if (!rows.length) this.body.append(el("tr", {}, el("td", { colspan: this.columns.length + 3 }, "No trial fits these filters; remove one of them above.")));
    this.body.querySelector(`[data-trial="${here}"]`)?.classList.add("ty-here");
    if (focused) this.body.querySelector(`[data-trial="${focused}"] a`)?.focus({ preventScroll: true });
    this.drawFoot(rows.length, from, page, pages);
  }

  drawHead() {
    const { sort } = this.view;
    const key = `${sort} ${this.columns.map((column) => column.key).join()}`;
    if (this.headKey === key) return;
    this.headKey = key;
    const focused = this.head.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const cells = this.columns.map((column) => {
      const way = sort === column.key ? "ascending" : sort === `-${column.key}` ? "descending" : null;
      const button = el("button", { type: "button", class: "ty-sort", "data-key": column.key, click: () => this.view.sortBy(column.key) }, column.label, way ? icon(`sort-${way}`) : "");
      return el("th", { scope: "col", class: isRight(column) ? "num" : null, "aria-sort": way }, button);
    });
    const rest = [el("th", { scope: "col" }, "Executions"), el("th", { scope: "col", class: "num" }, this.sortButton("seconds", "Took")), el("th", { scope: "col" }, "Finished")];
    this.head.replaceChildren(el("tr", {}, el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Pick")), ...cells, ...rest));
    if (focused) this.head.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  sortButton(key, label) {
    const way = { [key]: "ascending", [`-${key}`]: "descending" }[this.view.sort];
    return el("button", { type: "button", class: "ty-sort", "data-key": key, click: () => this.view.sortBy(key) }, label, way ? icon(`sort-${way}`) : "");
  }

  row(index) {
    const { store, picked } = this.view;
    const trial = store.number[index];
    const box = el("input", { type: "checkbox", class: "form-check-input", "aria-label": `Pick trial ${trial}` });
    box.checked = picked.has(trial);
    const cells = this.columns.map((column) => this.cell(column, index));
    const took = store.columns.get("seconds").values[index];
    const css = [index === this.best ? "ty-best" : "", picked.has(trial) ? "ty-picked" : ""].join(" ").trim();
    return el(
      "tr",
      { "data-trial": trial, class: css || null },
      el("td", {}, box),
      ...cells,
      el("td", { class: "num" }, `${store.executions[index]} done`),
      el("td", { class: "num" }, duration(took)),
      el("td", {}, time(store.finished[index])),
    );
  }

  cell(column, index) {
    const { store } = this.view;
    if (column.key === "number") {
      const trial = store.number[index];
      const link = el("a", { href: `/jobs/${this.job}/trials/${trial}`, "data-open": true }, String(trial));
      const best = index === this.best ? el("span", { title: "best so far" }, icon("trophy"), el("span", { class: "visually-hidden" }, "best")) : "";
      const hand = store.by_hand[index] ? el("span", { class: "ty-tag" }, "by hand") : "";
      return el("td", {}, link, " ", best, hand);
    }
    if (column.key === "state") {
      const restarts = store.restarts[index];
      const told = restarts ? el("span", { class: "text-secondary ty-small" }, ` ${restarts} restart${restarts > 1 ? "s" : ""}`) : "";
      return el("td", {}, badge(column.categories[store.state[index]], store.waiting[store.number[index]]), told);
    }
    const text = store.text(column, index);
    if (column.key === "score" && store.std[index] && text !== "–") {
      return el("td", { class: "num" }, text, el("span", { class: "text-secondary ty-small" }, ` ± ${number(store.std[index], 2)}`));
    }
    return el("td", { class: isRight(column) ? "num" : null }, text === "inactive" ? el("span", { class: "text-secondary" }, text) : text);
  }

  markPicked() {
    for (const row of this.body.children) {
      const picked = this.view.picked.has(Number(row.dataset.trial));
      row.classList.toggle("ty-picked", picked);
      const box = row.querySelector("input");
      if (box) box.checked = picked;
    }
  }

  clicked(event) {
    const box = event.target.closest("input[type=checkbox]");
    if (box) this.view.pick(Number(box.closest("tr").dataset.trial));
  }

  drawFoot(count, from, page, pages) {
    const turn = (to, label, name) => el("button", { type: "button", class: "btn btn-sm", disabled: to < 1 || to > pages, click: () => this.view.turnTo(to) }, icon(name), label);
    const csv = `/api/v1/jobs/${this.job}`;
    const shown = count ? `${(from + 1).toLocaleString("en")}–${Math.min(from + EACH, count).toLocaleString("en")} of ${count.toLocaleString("en")}` : "none";
    const focused = this.foot.contains(document.activeElement) ? [...this.foot.querySelectorAll("button")].indexOf(document.activeElement) : -1;
    this.foot.replaceChildren(
      el("span", { class: "ty-num" }, shown),
      el("a", { class: "btn btn-sm", href: `${csv}/trials.csv`, download: true }, icon("download"), "Trials (CSV)"),
      el("a", { class: "btn btn-sm", href: `${csv}/metrics.csv`, download: true }, icon("download"), "Metrics (CSV)"),
      ...(pages > 1 ? [turn(page - 1, "Previous", "chevron-left"), turn(page + 1, "Next", "chevron-right")] : []),
    );
    if (focused >= 0) this.foot.querySelectorAll("button")[focused]?.focus();
  }

  /** j at the last row and k at the first turn the page. */
  turn(step) {
    const pages = Math.ceil(this.view.rows().length / EACH);
    const to = this.view.page + step;
    if (to < 1 || to > pages) return;
    this.view.turnTo(to);
    const row = step > 0 ? this.body.firstElementChild : this.body.lastElementChild;
    row.classList.add("ty-here");
    row.scrollIntoView({ block: "nearest" });
  }
}

const isRight = (column) => column.numeric && column.key !== "number";

function bestOf(store) {
  let best = -1;
  const completed = store.states.indexOf("completed");
  for (const index of store.scored()) {
    if (store.state[index] === completed && (best < 0 || store.better(store.score[index], store.score[best]))) best = index;
  }
  return best;
}

function time(seconds) {
  if (!seconds) return "–";
  const moment = new Date(seconds * 1000).toISOString();
  return el("time", { datetime: moment, title: `${moment.slice(0, 19).replace("T", " ")} UTC`, "data-relative": true }, relative(Date.now() / 1000 - seconds));
}

customElements.define("ty-trials", Trials);
