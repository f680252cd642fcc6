// The versions that were in production, as a band under the charts with the same time axis.

/** @import { Traffic } from "./store.js" */
import { address } from "../../shared/addresses.js";
import { scaleOf } from "../../shared/charts/axes.js";
import { tip } from "../../shared/charts/tip.js";
import { el, icon } from "../../shared/dom.js";
import { versionColour } from "./figures.js";
import { seconds } from "./store.js";
import { momentWords } from "./times.js";
import { TIME } from "./traffic-chart.js";

/**
 * A time in which one version was in production.
 * @typedef {{
 *   version: number | null, begin: string, end: string | null, kind: string, generation: number, by: string | null,
 *   reason: string,
 * }} Segment
 */

/** @type {Record<string, string>} */
const HOW = { promote: "promoted", rollback: "rolled back", take_down: "taken down", bring_up: "brought up" };
/** @type {Record<string, string>} */
const ICONS = { rollback: "arrow-back-up", take_down: "player-stop" };

/**
 * Return the sentences about a segment.
 * @param {Segment} segment
 */
function textOf({ version, begin, end, kind, generation, by, reason }) {
  const moment = (/** @type {string} */ at) => momentWords(seconds(at), 1, false, true);
  return {
    title: version ? `v${version} in production` : "no version served",
    rows: [
      { label: HOW[kind] ?? kind, value: moment(begin) },
      { label: "until", value: end ? moment(end) : "now" },
      { label: "by", value: by ?? "the system" },
      { label: "generation", value: String(generation) },
    ],
    foot: reason || undefined,
  };
}

/** @param {Segment} segment */
function sentenceOf(segment) {
  const { title, rows, foot } = textOf(segment);
  return `${title}: ${rows.map(({ label, value }) => `${label} ${value}`).join(", ")}${foot ? `. ${foot}` : ""}`;
}

export class Band {
  track = el("ol", { class: "ty-band" });
  from = el("span");
  to = el("span");
  element = el(
    "section",
    { class: "card ty-band-card", "aria-label": "Versions in production" },
    el("div", { class: "card-header" }, el("h2", { class: "card-title" }, "Versions in production")),
    el("div", { class: "card-body" }, this.track, el("div", { class: "ty-band-ends ty-num" }, this.from, this.to)),
  );
  drawn = "";

  /** @param {string} endpoint */
  constructor(endpoint) {
    this.endpoint = endpoint;
  }

  /**
   * Draw the segments in the time that the charts show.
   * @param {Traffic} data
   */
  draw({ begin, end, served, step_seconds }) {
    const scale = scaleOf(TIME, "x");
    const [low, high] = [scale.low ?? seconds(begin), scale.high ?? seconds(end)];
    const place = (/** @type {number} */ at) => Math.min(Math.max((at - low) / (high - low), 0), 1) * 100;
    const shown = served.filter((one) => seconds(one.begin) < high && (one.end === null || seconds(one.end) > low));
    if (this.drawn !== JSON.stringify(shown)) {
      this.drawn = JSON.stringify(shown);
      this.track.replaceChildren(...shown.map((segment) => this.segment(segment)));
    }
    shown.forEach((segment, at) => {
      const [left, right] = [place(seconds(segment.begin)), place(segment.end ? seconds(segment.end) : high)];
      const item = /** @type {HTMLElement} */ (this.track.children[at]);
      item.style.left = `${left}%`;
      item.style.width = `${right - left}%`;
    });
    this.from.textContent = momentWords(low, step_seconds, false, true);
    this.to.textContent = momentWords(high, step_seconds, false, true);
  }

  /** @param {Segment} segment */
  segment(segment) {
    const { version, kind } = segment;
    const name = ICONS[kind];
    const inside = [name ? icon(name) : "", version ? `v${version}` : "down"];
    const attributes = { class: version ? "ty-band-version" : "ty-band-none", "aria-label": sentenceOf(segment) };
    const link = version
      ? el("a", { ...attributes, href: address(`/models/${this.endpoint}/versions/${version}`) }, inside)
      : el("span", { ...attributes, tabindex: "0", role: "note" }, inside);
    if (version) link.style.setProperty("--ty-version", versionColour(version));
    const show = (/** @type {number} */ x, /** @type {number} */ y) => tip.show(link, x, y, textOf(segment));
    link.addEventListener("pointermove", ({ clientX, clientY }) => show(clientX, clientY));
    link.addEventListener("focus", () => {
      const { left, bottom } = link.getBoundingClientRect();
      show(left, bottom);
    });
    for (const type of ["pointerleave", "blur"]) link.addEventListener(type, () => tip.hide(link));
    return el("li", {}, link);
  }
}
