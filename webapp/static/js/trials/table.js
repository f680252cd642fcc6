// <ty-trials job>: the trials that fit the filters, a page at a time, sorted by any column.

import { relative } from "../time.js";
import { Bar } from "./bar.js";
import { badge, el, empty, icon, say } from "./dom.js";
import { Filters } from "./filters.js";
import { viewOf } from "./view.js";
import { duration, grouped } from "./words.js";

const EACH = 25;
const ALL = [0, EACH];

class Trials extends HTMLElement {
  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.filters = new Filters(this.view);
    this.bar = new Bar(this.view, this.getAttribute("ensemble"));
    this.head = el("thead");
    this.body = el("tbody", { click: (event) => this.clicked(event) });
    this.table = el(
      "div",
      { class: "table-responsive" },
      el("table", { class: "table ty-trials", "data-rows": true }, this.head, this.body),
    );
    this.foot = this.makeFoot();
    this.addEventListener("ty:edge", (event) => this.turn(event.detail));
    this.sight = ALL;
    this.view.addEventListener("change", (event) => this.changed(event.what));
    this.draw("all");
  }

  /** A turned page stands at once for whoever asked for it; all else is drawn with the charts, once a frame. */
  changed(what) {
    if (what === "axes" || what === "chart") return;
    if (this.view.compared.length) import("./compare.js"); // most visits compare nothing
    if (what === "compare") return;
    cancelAnimationFrame(this.frame);
    this.due = !this.due || this.due === what ? what : "all";
    this.sight = what === "page" ? ALL : this.rowsInSight(); // while the page is as it was laid out
    if (what === "page") this.draw(this.due);
    else this.frame = requestAnimationFrame(() => this.draw(this.due));
  }

  /** Between which rows the window lies: [first, after the last]. */
  rowsInSight() {
    const { top, height } = this.body.getBoundingClientRect();
    const each = height / this.body.children.length;
    return each ? [Math.floor(-top / each), Math.ceil((innerHeight - top) / each)] : ALL;
  }

  draw(what) {
    this.due = null;
    const { store } = this.view;
    if (!store.ready)
      return this.replaceChildren(
        store.failed
          ? empty("The trials could not be loaded", "Reload the page to try again.", "plug-connected-x")
          : el("p", { class: "ty-loading text-secondary" }, "Loading the trials …"),
      );
    if (!store.size)
      return this.replaceChildren(empty("No trials yet", "The first ones appear as soon as a worker has a free slot."));
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
    if (this.bestAt !== store.version) [this.bestAt, this.best] = [store.version, bestOf(store)];
    const here = this.body.querySelector(".ty-here")?.dataset.trial;
    this.drawHead();
    this.drawRows(rows.slice(from, from + EACH), () =>
      this.body.querySelector(`[data-trial="${here}"]`)?.classList.add("ty-here"),
    );
    this.drawFoot(rows.length, from, page, pages);
  }

  /** Headings are made once a set of columns; a sort only moves its arrow, and the focus stays where it is. */
  drawHead() {
    const { sort } = this.view;
    const columns = this.columns.map((column) => column.key).join();
    if (this.headKey !== columns) {
      this.headKey = columns;
      const cells = this.columns.map((column) => this.heading(column.key, column.label, isRight(column)));
      const rest = [
        el("th", { scope: "col" }, "Executions"),
        this.heading("seconds", "Took", true),
        el("th", { scope: "col" }, "Finished"),
      ];
      this.head.replaceChildren(
        el("tr", {}, el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Pick")), ...cells, ...rest),
      );
      this.sorted = null;
    }
    if (this.sorted === sort) return;
    this.sorted = sort;
    for (const button of this.head.querySelectorAll("[data-key]")) {
      const way = { [button.dataset.key]: "ascending", [`-${button.dataset.key}`]: "descending" }[sort];
      if (way) button.parentElement.setAttribute("aria-sort", way);
      else button.parentElement.removeAttribute("aria-sort");
      button.querySelector("svg")?.remove();
      if (way) button.append(icon(`sort-${way}`));
    }
  }

  heading(key, label, right) {
    return el(
      "th",
      { scope: "col", class: right ? "num" : null },
      el("button", { type: "button", class: "ty-sort", "data-key": key, click: () => this.view.sortBy(key) }, label),
    );
  }

  /** Rows are filled anew, not made anew: styling a fresh one costs five times as much. Those out of sight follow. */
  drawRows(indices, then) {
    if (this.lineKey !== this.headKey) {
      this.lineKey = this.headKey;
      this.lines = [];
    }
    while (this.lines.length < indices.length) this.lines.push(new Line(this));
    const lines = this.lines.slice(0, indices.length);
    const [from, to] = this.sight;
    const late = [];
    lines.forEach((line, at) =>
      line.row.isConnected && (at < from || at >= to)
        ? late.push(() => line.show(indices[at]))
        : line.show(indices[at]),
    );
    const wanted = lines.map((line) => line.row);
    if (!wanted.length)
      wanted.push(
        el(
          "tr",
          {},
          el("td", { colspan: this.columns.length + 4 }, "No trial fits these filters; remove one of them above."),
        ),
      );
    if (wanted.length !== this.body.children.length || wanted[0] !== this.body.firstElementChild)
      this.body.replaceChildren(...wanted);
    then();
    this.afterwards(late.length ? [...late, then] : []);
  }

  /** Do these once the frame that is being made is painted, unless rows are drawn again before. */
  afterwards(steps) {
    clearTimeout(this.rest);
    cancelAnimationFrame(this.painting);
    if (steps.length)
      this.painting = requestAnimationFrame(() => (this.rest = setTimeout(() => steps.forEach((step) => step()))));
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

  /** The pager stays as it is made: taking away a button in focus would cost a layout, and the focus. */
  makeFoot() {
    const csv = `/api/v1/jobs/${this.job}`;
    const turn = (step, label, name) =>
      el(
        "button",
        { type: "button", class: "btn btn-sm", click: () => this.view.turnTo(this.page + step) },
        icon(name),
        label,
      );
    this.range = el("span", { class: "ty-num" });
    this.turns = [turn(-1, "Previous", "chevron-left"), turn(1, "Next", "chevron-right")];
    const download = (name, label) =>
      el("a", { class: "btn btn-sm", href: `${csv}/${name}.csv`, download: true }, icon("download"), label);
    return el(
      "div",
      { class: "ty-pager" },
      this.range,
      download("trials", "Trials (CSV)"),
      download("metrics", "Metrics (CSV)"),
      this.turns,
    );
  }

  drawFoot(count, from, page, pages) {
    this.page = page;
    say(
      this.range,
      count ? `${grouped(from + 1)}–${grouped(Math.min(from + EACH, count))} of ${grouped(count)}` : "none",
    );
    this.turns.forEach((button, at) => {
      button.hidden = pages === 1;
      button.disabled = at ? page >= pages : page <= 1;
    });
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
    this.cells = table.columns.map((column) =>
      column.key === "number"
        ? el("td", {}, this.link, " ", this.marks)
        : column.key === "state"
          ? this.state
          : el("td", { class: isRight(column) ? "num" : null }),
    );
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
    this.mark(index === table.best, {
      "by hand": store.by_hand[index],
      "Pareto front": store.front.has(trial),
      [`answered by ${store.answers[trial]}`]: store.answers[trial],
    });
    this.tellState(store, index, trial);
    table.columns.forEach(
      (column, at) =>
        column.key === "number" || column.key === "state" || say(this.cells[at], store.told(column, index)),
    );
    say(this.done, doneOf(store, index, trial));
    say(this.took, duration(store.columns.get("seconds").values[index]));
    this.tellTime(store.finished[index]);
  }

  mark(best, tags) {
    const shown = Object.keys(tags).filter((tag) => tags[tag]);
    const key = `${best} ${shown}`;
    if (this.marked === key) return;
    this.marked = key;
    const trophy = best
      ? el("span", { title: "best" }, icon("trophy"), el("span", { class: "visually-hidden" }, "best"))
      : "";
    this.marks.replaceChildren(trophy, ...shown.flatMap((tag) => [el("span", { class: "ty-tag" }, tag), " "]));
  }

  tellState(store, index, trial) {
    const [state, why, restarts] = [
      store.states[store.state[index]],
      store.waiting[trial] ?? "",
      store.restarts[index],
    ];
    const key = `${state} ${restarts} ${why}`;
    if (this.stated === key) return;
    this.stated = key;
    const more = restarts
      ? el("span", { class: "text-secondary ty-small" }, ` ${restarts} restart${restarts > 1 ? "s" : ""}`)
      : "";
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

/** How many executions are done, and how far those are that run. */
function doneOf(store, index, trial) {
  const running = Object.values(store.under_way[trial] ?? {});
  const done = running.length && !store.executions[index] ? "" : `${store.executions[index]} done`;
  return [done, reached(running)].filter(Boolean).join(", ");
}

function reached(running) {
  if (!running.length) return "";
  const epochs = running.map((each) => each.epochs).sort((a, b) => a - b);
  const [least, most] = [epochs[0], epochs.at(-1)];
  const of = running[0].of ? ` of ${grouped(running[0].of)}` : "";
  const many = running.length > 1 ? `${running.length} at ` : "";
  return many + (least === most ? `epoch ${grouped(most)}${of}` : `epochs ${grouped(least)} to ${grouped(most)}${of}`);
}

const isRight = (column) => column.numeric && column.key !== "number";

function bestOf(store) {
  let best = -1;
  const completed = store.states.indexOf("completed");
  for (const index of store.scored()) {
    if (store.state[index] === completed && (best < 0 || store.better(store.score[index], store.score[best])))
      best = index;
  }
  return best;
}

customElements.define("ty-trials", Trials);
