// A grid of charts, each of which can be enlarged in its place. The enlarged chart is drawn at once. The others on the
// screen follow one by one while the page is idle, and the rest when they are scrolled into view.

/** @import { Changed } from "./settings.js" */
/** @import { Tile } from "./tile.js" */
import { el } from "../dom.js";
import { addressOf, settings } from "./settings.js";

const MARGIN = "300px"; // drawn before it comes into view
const PAUSE = 150; // ms after a change until the other charts follow: the next change must not wait for them
const LONGEST_WAIT = 1000; // ms that a visible chart waits for a quiet page

const whenQuiet = (/** @type {() => void} */ run) =>
  "requestIdleCallback" in globalThis ? requestIdleCallback(run, { timeout: LONGEST_WAIT }) : setTimeout(run, 50);
const cancelQuiet = (/** @type {number} */ id) =>
  "cancelIdleCallback" in globalThis ? cancelIdleCallback(id) : clearTimeout(id);

export class Grid {
  /** The frame that will draw the first charts; 0 if none is awaited. */
  frame = 0;
  quiet = 0;
  rest = 0;
  /** The chart of the address is still to be scrolled to. */
  arriving = settings.enlarged !== null;

  /** @param {Tile[]} tiles */
  constructor(tiles) {
    this.tiles = tiles;
    if (tiles.length) tiles[0].visible = true; // until the observer knows
    this.links = new Map([[/** @type {string | null} */ (null), this.link(null, "All")]]);
    for (const { id, title } of tiles) this.links.set(id, this.link(id, title));
    this.nav = el("nav", { class: "ty-chart-nav", "aria-label": "Charts" }, [...this.links.values()]);
    this.element = el(
      "div",
      { class: "ty-chart-grid" },
      tiles.map(({ element }) => element),
    );
    this.observer = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: MARGIN });
    for (const { element } of tiles) this.observer.observe(element);
    this.ignore = settings.onChange((changed) => this.changed(changed));
    document.addEventListener("ty:theme", this.onTheme);
    this.drawNav();
  }

  end() {
    this.observer.disconnect();
    this.ignore();
    this.cancel();
    document.removeEventListener("ty:theme", this.onTheme);
  }

  cancel() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.rest);
    cancelQuiet(this.quiet);
  }

  onTheme = () => {
    for (const tile of this.tiles) tile.dirty = true;
    for (const tile of this.tiles) if (tile.visible) tile.draw();
  };

  /** @param {Changed} changed */
  changed({ kind, chart }) {
    if (kind === "axes") this.invalidate(this.tiles.filter(({ id }) => id === chart));
    else if (kind === "all") this.invalidate();
    else this.invalidate(this.tiles.filter(({ id, element }) => id === chart || element.matches(".ty-enlarged")));
    this.drawNav();
    this.arriving ||= kind === "enlarge" && chart !== null;
  }

  /** @param {Tile[]} tiles to draw again */
  invalidate(tiles = this.tiles) {
    for (const tile of tiles) {
      tile.dirty = true;
      if (tile.visible) tile.element.setAttribute("aria-busy", "true");
    }
    this.cancel();
    this.frame = requestAnimationFrame(() => this.drawFirst());
  }

  /** Draw the enlarged chart and those that change their size, or else the chart under the pointer or in focus. */
  drawFirst() {
    this.frame = 0;
    const first = this.tiles.filter(
      ({ dirty, enlarged, element }) => dirty && (enlarged || element.matches(".ty-enlarged")),
    );
    const [used = this.tiles[0]] = this.tiles.filter(({ element }) => element.matches(":hover, :focus-within"));
    if (!first.length && used?.dirty && used.visible) first.push(used);
    for (const tile of first) tile.draw();
    this.arrive();
    this.rest = setTimeout(() => this.drawRest(), first.length ? PAUSE : 0);
  }

  drawRest() {
    cancelQuiet(this.quiet);
    if (this.next())
      this.quiet = whenQuiet(() => {
        this.next()?.draw();
        this.drawRest();
      });
  }

  /** @returns {Tile | undefined} */
  next() {
    return this.tiles.find(({ dirty, visible }) => dirty && visible);
  }

  /** Scroll to the enlarged chart, if it is not on the screen. */
  arrive() {
    if (!this.arriving) return;
    const tile = this.tiles.find(({ enlarged }) => enlarged);
    if (tile?.element.querySelector(".ty-loading")) return; // it is not yet as tall as it will be
    this.arriving = false;
    tile?.element.scrollIntoView({ block: "nearest" });
  }

  /** @param {IntersectionObserverEntry[]} entries */
  seen(entries) {
    const shown = new Map(entries.map(({ target, isIntersecting }) => [target, isIntersecting]));
    for (const tile of this.tiles) {
      tile.visible = shown.get(tile.element) ?? tile.visible;
      tile.element.setAttribute("aria-busy", String(tile.dirty && tile.visible));
    }
    // Before that frame, a chart could be drawn enlarged beside the one that was.
    if (!this.frame) this.drawRest();
  }

  /**
   * @param {string | null} id
   * @param {string} title
   */
  link(id, title) {
    const go = (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      settings.enlarge(id);
    };
    return el("a", { href: addressOf(id), click: go }, title);
  }

  /** Mark the link of the enlarged chart; the links are kept, so that the focus on one of them stays. */
  drawNav() {
    const current = this.tiles.some(({ enlarged }) => enlarged) ? settings.enlarged : null;
    for (const [id, link] of this.links) {
      link.classList.toggle("active", id === current);
      if (id === current) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }
}
