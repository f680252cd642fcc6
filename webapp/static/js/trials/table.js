// <ty-trials job>: the trials that fit the filters, a page at a time, sorted by any column.
import { Bar } from "./bar.js";
import { badge, el, empty, icon } from "./dom.js";
import { Filters } from "./filters.js";
import { relative } from "../time.js";
import { viewOf } from "./view.js";
import { duration } from "./words.js";

const EACH = 25;

class Trials extends HTMLElement {
  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.filters = new Filters(this.view);
    this.bar = new Bar(this.view, this.getAttribute("ensemble"));
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
    if (this.view.compared.length) import("./compare.js"); // most visits compare nothing
    if (what === "compare") return undefined;
    const { store } = this.view;
    if (!store.ready) return this.replaceChildren(store.failed ? empty("The trials could not be loaded", "Reload the page to try again.", "plug-connected-x") : el("p", { class: "ty-loading text-secondary" }, "Loading the trials …"));
    if (!store.size) return this.replaceChildren(empty("No trials yet", "The first ones appear as soon as a worker has a free slot."));
    if (!this.table.isConnected) this.replaceChildren(this.filters.element, this.bar.element, this.table, this.foot);
    if (what === "pick") this.markPicked();
    else this.fill();
    this.filters.draw(this.view.rows().length);
    this.bar.draw();
    return undefined;
  }

  fill() {
    const { view } = this;
    const { store } = view;
    const rows = view.rows();
    const pages = Math.max(1, Math.ceil(rows.length / EACH));
    const page = Math.min(view.page, pages);
    const from = (page - 1) * EACH;
    this.columns = view.tableColumns;
    this.best = bestOf(store);
    const here = this.body.querySelector(".ty-here")?.dataset.trial;
    this.drawHead();
    this.drawRows(rows.slice(from, from + EACH));
    this.body.querySelector(`[data-trial="${here}"]`)?.classList.add("ty-here");
    this.drawFoot(rows.length, from, page, pages);
  }

  drawHead() {
    const { sort } = this.view;
    this.headKey = this.columns.map((column) => column.key).join();
    const key = `${sort} ${this.headKey}`;
    if (this.sortKey === key) return;
    this.sortKey = key;
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

  /** Rows are filled anew, not made anew: styling a fresh one costs five times as much. */
  drawRows(indices) {
    if (this.lineKey !== this.headKey) {
      this.lineKey = this.headKey;
      this.lines = [];
    }
    while (this.lines.length < indices.length) this.lines.push(new Line(this));
    const lines = this.lines.slice(0, indices.length);
    lines.forEach((line, at) => line.show(indices[at]));
    const wanted = lines.map((line) => line.row);
    if (!wanted.length) wanted.push(el("tr", {}, el("td", { colspan: this.columns.length + 4 }, "No trial fits these filters; remove one of them above.")));
    if (wanted.length !== this.body.children.length || wanted[0] !== this.body.firstElementChild) this.body.replaceChildren(...wanted);
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

/** A row of the table, with a cell a column. */
class Line {
  constructor(table) {
    this.table = table;
    this.box = el("input", { type: "checkbox", class: "form-check-input" });
    this.link = el("a", { "data-open": true });
    this.marks = el("span");
    this.state = el("td");
    this.cells = table.columns.map((column) => (column.key === "number" ? el("td", {}, this.link, " ", this.marks) : column.key === "state" ? this.state : el("td", { class: isRight(column) ? "num" : null })));
    this.done = el("td", { class: "num" });
    this.took = el("td", { class: "num" });
    this.time = el("time", { "data-relative": true });
    this.row = el("tr", {}, el("td", {}, this.box), this.cells, this.done, this.took, el("td", {}, this.time));
  }

  show(index) {
    const { table, row } = this;
    const { store, picked } = table.view;
    const trial = store.number[index];
    row.dataset.trial = trial;
    row.className = [index === table.best ? "ty-best" : "", picked.has(trial) ? "ty-picked" : ""].join(" ").trim();
    this.box.checked = picked.has(trial);
    this.box.setAttribute("aria-label", `Pick trial ${trial}`);
    this.link.href = `/jobs/${table.job}/trials/${trial}`;
    say(this.link, String(trial));
    this.mark(index === table.best, { "by hand": store.by_hand[index], "Pareto front": store.front.has(trial), [`answered by ${store.answers[trial]}`]: store.answers[trial] });
    this.tellState(store, index, trial);
    table.columns.forEach((column, at) => column.key === "number" || column.key === "state" || say(this.cells[at], store.told(column, index)));
    say(this.done, `${store.executions[index]} done`);
    say(this.took, duration(store.columns.get("seconds").values[index]));
    this.tellTime(store.finished[index]);
  }

  mark(best, tags) {
    const shown = Object.keys(tags).filter((tag) => tags[tag]);
    const key = `${best} ${shown}`;
    if (this.marked === key) return;
    this.marked = key;
    const trophy = best ? el("span", { title: "best so far" }, icon("trophy"), el("span", { class: "visually-hidden" }, "best")) : "";
    this.marks.replaceChildren(trophy, ...shown.flatMap((tag) => [el("span", { class: "ty-tag" }, tag), " "]));
  }

  tellState(store, index, trial) {
    const [state, why, restarts] = [store.states[store.state[index]], store.waiting[trial] ?? "", store.restarts[index]];
    const key = `${state} ${restarts} ${why}`;
    if (this.stated === key) return;
    this.stated = key;
    const more = restarts ? el("span", { class: "text-secondary ty-small" }, ` ${restarts} restart${restarts > 1 ? "s" : ""}`) : "";
    this.state.replaceChildren(badge(state, why), more);
  }

  tellTime(seconds) {
    const moment = seconds ? new Date(seconds * 1000).toISOString() : "";
    this.time.toggleAttribute("data-relative", Boolean(seconds));
    this.time.dateTime = moment;
    this.time.title = moment ? `${moment.slice(0, 19).replace("T", " ")} UTC` : "";
    say(this.time, seconds ? relative(Date.now() / 1000 - seconds) : "–");
  }
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
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

customElements.define("ty-trials", Trials);
