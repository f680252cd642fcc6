// <ty-trials job>: the trials that fit the filters, a page at a time, sorted by any column.

import { address } from "../shared/addresses.js";
import { badge, el, empty, icon, setText } from "../shared/dom.js";
/** @import { Column, Reached } from "./types.js" */
/** @import { Store } from "./store.js" */
/** @import { ChangeKind, View } from "./view.js" */
import { closest, findAll } from "../shared/elements.js";
import { relative } from "../shared/time.js";
import { duration, grouped } from "../shared/words.js";
import { Bar } from "./bar.js";
import { Filters } from "./filters.js";
import { bestOf } from "./store.js";
import { viewOf } from "./view.js";

const EACH = 25;
const ALL = [0, EACH];
/** Headings that differ from the names of their columns. @type {Record<string, string>} */
const HEADINGS = { seconds: "Took", finished: "Finished" };

class Trials extends HTMLElement {
  job = 0;
  frame = 0;
  painting = 0;
  rest = 0;
  page = 1;
  best = -1;
  /** The version of the store that `best` was found in. */
  bestAt = -1;
  headKey = "";
  lineKey = "";
  /** The sort that the headings show; null before the first. @type {string | null} */
  sorted = null;
  /** The change to draw in the next frame. @type {ChangeKind | null} */
  due = null;
  /** The first visible row and the one after the last. */
  visible = ALL;
  /** @type {Column[]} */
  columns = [];
  /** @type {Line[]} */
  lines = [];
  head = el("thead");
  body = el("tbody");
  range = el("span", { class: "ty-num" });
  /** @type {HTMLButtonElement[]} */
  turns = [];
  /** @type {View} */
  view;
  /** @type {Filters} */
  filters;
  /** @type {Bar} */
  bar;
  /** @type {HTMLElement} */
  table;
  /** @type {HTMLElement} */
  foot;

  connectedCallback() {
    if (this.view) return; // only moved
    this.job = Number(this.getAttribute("job"));
    this.view = viewOf(this.job);
    this.filters = new Filters(this.view);
    this.bar = new Bar(this.view, this.getAttribute("ensemble"));
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.table = el(
      "div",
      { class: "table-responsive" },
      el("table", { class: "table ty-trials", "data-rows": true }, this.head, this.body),
    );
    this.foot = this.makeFoot();
    this.addEventListener("ty:edge", (event) => this.turn(/** @type {CustomEvent<number>} */ (event).detail));
    this.view.onChange((kind) => this.changed(kind));
    this.draw("all");
  }

  /**
   * Draw a turned page at once, and all else with the charts, once a frame.
   * @param {ChangeKind} kind
   */
  changed(kind) {
    if (this.view.compared.length) import("./compare.js"); // most visits compare nothing
    if (kind === "compare") return;
    cancelAnimationFrame(this.frame);
    const due = !this.due || this.due === kind ? kind : "all";
    this.due = due;
    this.visible = kind === "page" ? ALL : this.rowsInSight(); // before anything changes the layout
    if (kind === "page") this.draw(due);
    else this.frame = requestAnimationFrame(() => this.draw(due));
  }

  /** Return the first visible row and the one after the last. */
  rowsInSight() {
    const { top, height } = this.body.getBoundingClientRect();
    const each = height / this.body.children.length;
    return each ? [Math.floor(-top / each), Math.ceil((innerHeight - top) / each)] : ALL;
  }

  /** @param {ChangeKind} kind */
  draw(kind) {
    this.due = null;
    const { store } = this.view;
    if (!store.ready) {
      this.replaceChildren(
        store.failed
          ? empty("The trials could not be loaded", "Reload the page to try again.", "plug-connected-x")
          : el("p", { class: "ty-loading text-secondary" }, "Loading the trials …"),
      );
      return;
    }
    if (!store.size) {
      this.replaceChildren(empty("No trials yet", "The first ones appear as soon as a worker has a free slot."));
      return;
    }
    if (!this.table.isConnected) this.replaceChildren(this.filters.element, this.bar.element, this.table, this.foot);
    if (kind === "selection") this.markSelected();
    else this.fill();
    this.filters.draw(this.view.rows().length);
    this.bar.draw();
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
    const shown = rows.slice(from, from + EACH);
    this.drawHead();
    const marked = this.takeMark();
    this.drawRows(shown);
    this.lines[shown.findIndex((index) => store.number[index] === marked)]?.row.classList.add("ty-here");
    this.drawFoot(rows.length, from, page, pages);
  }

  /** Make the headings once for a set of columns; a sort only moves its arrow, so that the focus stays. */
  drawHead() {
    const { sort } = this.view;
    const columns = this.columns.map((column) => column.key).join();
    if (this.headKey !== columns) {
      this.headKey = columns;
      const cells = this.columns.map((column) =>
        this.heading(column.key, HEADINGS[column.key] ?? column.label, isRightAligned(column)),
      );
      this.head.replaceChildren(
        el("tr", {}, el("th", { scope: "col" }, el("span", { class: "visually-hidden" }, "Select")), ...cells),
      );
      this.sorted = null;
    }
    if (this.sorted === sort) return;
    this.sorted = sort;
    for (const button of findAll(this.head, "[data-key]", HTMLElement)) {
      const { key } = button.dataset;
      const way = sort === key ? "ascending" : sort === `-${key}` ? "descending" : null;
      if (way) button.parentElement?.setAttribute("aria-sort", way);
      else button.parentElement?.removeAttribute("aria-sort");
      button.querySelector("svg")?.remove();
      if (way) button.append(icon(`sort-${way}`));
    }
  }

  /**
   * @param {string} key
   * @param {string} label
   * @param {boolean} right
   */
  heading(key, label, right) {
    return el(
      "th",
      { scope: "col", class: right ? "num" : null },
      el("button", { type: "button", class: "ty-sort", "data-key": key, click: () => this.view.sortBy(key) }, label),
    );
  }

  /** Take the mark of the keyboard off its row; return the number of the trial, or NaN if none had it. */
  takeMark() {
    const [row] = findAll(this.body, ".ty-here", HTMLElement);
    row?.classList.remove("ty-here");
    return Number(row?.dataset.trial);
  }

  /**
   * Fill the rows; new ones would cost five times as much to style. Those out of sight follow later.
   * @param {Uint32Array} indices
   */
  drawRows(indices) {
    if (this.lineKey !== this.headKey) {
      this.lineKey = this.headKey;
      this.lines = [];
    }
    while (this.lines.length < indices.length) this.lines.push(new Line(this));
    const lines = this.lines.slice(0, indices.length);
    const [from, to] = this.visible;
    /** @type {(() => void)[]} */
    const deferred = [];
    lines.forEach((line, at) => {
      if (line.row.isConnected && (at < from || at >= to)) deferred.push(() => line.show(indices[at]));
      else line.show(indices[at]);
    });
    const wanted = lines.map((line) => line.row);
    if (!wanted.length)
      wanted.push(
        el(
          "tr",
          {},
          el("td", { colspan: this.columns.length + 1 }, "No trial fits these filters; remove one of them above."),
        ),
      );
    if (wanted.length !== this.body.children.length || wanted[0] !== this.body.firstElementChild)
      this.body.replaceChildren(...wanted);
    this.afterwards(deferred);
  }

  /**
   * Do these after the current frame is painted, unless rows are drawn again before.
   * @param {(() => void)[]} steps
   */
  afterwards(steps) {
    clearTimeout(this.rest);
    cancelAnimationFrame(this.painting);
    if (!steps.length) return;
    this.painting = requestAnimationFrame(() => {
      this.rest = setTimeout(() => {
        for (const step of steps) step();
      });
    });
  }

  markSelected() {
    for (const { row, box } of this.lines) {
      const selected = this.view.selected.has(Number(row.dataset.trial));
      row.classList.toggle("ty-selected", selected);
      box.checked = selected;
    }
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    const row = closest(event, "input[type=checkbox]")?.closest("tr");
    if (row) this.view.toggleSelected(Number(row.dataset.trial));
  }

  /** Make the pager, once: removing a button would cost a layout, and the focus if it is on the button. */
  makeFoot() {
    const csv = address(`/api/v1/jobs/${this.job}`);
    const turn = (/** @type {number} */ step, /** @type {string} */ label, /** @type {string} */ name) =>
      el(
        "button",
        { type: "button", class: "btn btn-sm", click: () => this.view.turnTo(this.page + step) },
        icon(name),
        label,
      );
    this.turns = [turn(-1, "Previous", "chevron-left"), turn(1, "Next", "chevron-right")];
    const download = (/** @type {string} */ name, /** @type {string} */ label) =>
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

  /**
   * @param {number} count
   * @param {number} from
   * @param {number} page
   * @param {number} pages
   */
  drawFoot(count, from, page, pages) {
    this.page = page;
    setText(
      this.range,
      count ? `${grouped(from + 1)}–${grouped(Math.min(from + EACH, count))} of ${grouped(count)}` : "none",
    );
    this.turns.forEach((button, at) => {
      button.hidden = pages === 1;
      button.disabled = at ? page >= pages : page <= 1;
    });
  }

  /**
   * Turn the page, by j at the last row and k at the first.
   * @param {number} step
   */
  turn(step) {
    const pages = Math.ceil(this.view.rows().length / EACH);
    const to = this.view.page + step;
    if (to < 1 || to > pages) return;
    this.view.turnTo(to);
    const row = step > 0 ? this.body.firstElementChild : this.body.lastElementChild;
    row?.classList.add("ty-here");
    row?.scrollIntoView({ block: "nearest" });
  }
}

/** A row of the table, with a cell for each column. */
class Line {
  /** The contents of the marks and of the state that are shown. */
  shownMarks = "";
  shownState = "";

  /** @param {Trials} table */
  constructor(table) {
    this.table = table;
    this.box = el("input", { type: "checkbox", class: "form-check-input" });
    this.link = el("a", { "data-open": true });
    this.marks = el("span");
    this.state = el("td");
    this.time = el("time", { "data-relative": true });
    this.cells = table.columns.map((column) =>
      column.key === "number"
        ? el("td", {}, this.link, " ", this.marks)
        : column.key === "state"
          ? this.state
          : column.key === "finished"
            ? el("td", {}, this.time)
            : el("td", { class: isRightAligned(column) ? "num" : null }),
    );
    this.row = el("tr", {}, el("td", {}, this.box), this.cells);
  }

  /** @param {number} index */
  show(index) {
    const { table, row } = this;
    const { store, selected } = table.view;
    const trial = store.number[index];
    row.dataset.trial = String(trial);
    row.classList.toggle("ty-best", index === table.best && store.beats_constant !== false);
    row.classList.toggle("ty-selected", selected.has(trial));
    this.box.checked = selected.has(trial);
    this.box.setAttribute("aria-label", `Select trial ${trial}`);
    this.link.href = address(`/jobs/${table.job}/trials/${trial}`);
    setText(this.link, String(trial));
    this.mark(index === table.best, {
      "by hand": store.by_hand[index],
      "Pareto front": store.front.has(trial),
      [`answered by ${store.answers[trial]}`]: store.answers[trial],
    });
    this.showState(store, index, trial);
    table.columns.forEach((column, at) => {
      if (column.key === "finished") this.showTime(store.finished[index]);
      else if (column.key !== "number" && column.key !== "state") setText(this.cells[at], textOf(store, column, index));
    });
  }

  /**
   * @param {boolean} best
   * @param {Record<string, unknown>} tags
   */
  mark(best, tags) {
    const shown = Object.keys(tags).filter((tag) => tags[tag]);
    const { store } = this.table.view;
    const isNoBetter = store.beats_constant === false;
    const key = `${best} ${isNoBetter} ${shown}`;
    if (this.shownMarks === key) return;
    this.shownMarks = key;
    const by = `best by ${store.objective.metric}${isNoBetter ? ", but not better than the constant prediction" : ""}`;
    const name = el("span", { class: "visually-hidden" }, by);
    const trophy = best ? el("span", { title: by }, icon(isNoBetter ? "alert-triangle" : "trophy"), name) : "";
    this.marks.replaceChildren(trophy, ...shown.flatMap((tag) => [el("span", { class: "ty-tag" }, tag), " "]));
  }

  /**
   * @param {Store} store
   * @param {number} index
   * @param {number} trial
   */
  showState(store, index, trial) {
    const state = store.states[store.state[index]];
    const why = store.waiting[trial] ?? "";
    const restarts = store.restarts[index];
    const running = reached(Object.values(store.under_way[trial] ?? {}), store.unit);
    const key = `${state} ${restarts} ${why} ${running}`;
    if (this.shownState === key) return;
    this.shownState = key;
    const more = restarts
      ? el("span", { class: "text-secondary ty-small" }, ` ${restarts} restart${restarts > 1 ? "s" : ""}`)
      : "";
    const epochs = running ? el("span", { class: "text-secondary ty-small" }, ` ${running}`) : "";
    this.state.replaceChildren(badge(state, why), epochs, more);
  }

  /** @param {number | null} seconds */
  showTime(seconds) {
    const moment = seconds ? new Date(seconds * 1000).toISOString() : "";
    this.time.toggleAttribute("data-relative", Boolean(seconds));
    this.time.dateTime = moment;
    this.time.title = moment ? `${moment.slice(0, 19).replace("T", " ")} UTC` : "";
    setText(this.time, seconds ? relative(Date.now() / 1000 - seconds) : "–");
  }
}

/**
 * Return the text of a cell.
 * @param {Store} store
 * @param {Column} column
 * @param {number} index
 */
const textOf = (store, column, index) =>
  column.key === "seconds" ? duration(column.values[index]) : store.textWithSpread(column, index);

/**
 * Return which epoch, or step of a script, the running executions of a trial have reached.
 * @param {Reached[]} running
 * @param {string} unit
 */
function reached(running, unit) {
  if (!running.length) return "";
  const epochs = running.map((each) => each.epochs).sort((a, b) => a - b);
  const [least, most] = [epochs[0], epochs[epochs.length - 1]];
  const of = running[0].of ? ` of ${grouped(running[0].of)}` : "";
  const many = running.length > 1 ? `${running.length} at ` : "";
  return (
    many + (least === most ? `${unit} ${grouped(most)}${of}` : `${unit}s ${grouped(least)} to ${grouped(most)}${of}`)
  );
}

/** @param {Column} column */
const isRightAligned = (column) => column.numeric && column.key !== "number" && column.key !== "finished";

customElements.define("ty-trials", Trials);
