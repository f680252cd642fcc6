// The values at the pointer, as a small box beside it. Its text is never markup.

import { el } from "../dom.js";

/**
 * One value of a tip, and where it is if the rows differ in it. The nearest to the pointer is bold.
 * @typedef {{ label: string, value: string, place?: string, colour?: string, nearest?: boolean }} TipRow
 */
/** @typedef {{ title: string, rows: TipRow[], foot?: string }} TipText */

const GAP = 14; // pixels between the pointer and the box
const EDGE = 4; // pixels between the box and the edge of the window

/** @param {TipText} text */
function tipContent({ title, rows, foot }) {
  const lines = rows.map(({ label, value, place, colour, nearest }) => {
    const mark = el("span", { class: "ty-swatch" });
    if (colour) mark.style.background = colour;
    return el(
      "div",
      { class: nearest ? "ty-tip-row ty-tip-nearest" : "ty-tip-row" },
      el("span", { class: "ty-tip-label" }, colour ? mark : "", label),
      el("span", { class: "ty-num" }, value, place ? el("span", { class: "ty-tip-place" }, ` ${place}`) : ""),
    );
  });
  return el(
    "div",
    { class: "ty-tip-text" },
    el("div", { class: "ty-tip-title" }, title),
    lines,
    foot ? el("div", { class: "ty-tip-foot" }, foot) : "",
  );
}

/**
 * Return where a box starts that is after a place, or before it if there is no room.
 * @param {number} at
 * @param {number} size of the box
 * @param {number} room of the window
 */
const beside = (at, size, room) => Math.max(EDGE, at + GAP + size > room - EDGE ? at - GAP - size : at + GAP);

/** A box of the page that is shown at one place at a time. */
class Tip {
  box = el("div", { class: "ty-tip", "aria-hidden": "true", hidden: true });
  /** What shows the box now. @type {object | null} */
  owner = null;

  /**
   * Show a text beside a place of the window.
   * @param {object} owner
   * @param {number} x
   * @param {number} y
   * @param {TipText} text
   */
  show(owner, x, y, text) {
    const { box } = this;
    if (!box.isConnected) document.body.append(box);
    this.owner = owner;
    box.replaceChildren(tipContent(text));
    box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = box;
    box.style.transform = `translate(${beside(x, width, innerWidth)}px, ${beside(y, height, innerHeight)}px)`;
  }

  /** @param {object} owner */
  hide(owner) {
    if (this.owner === owner) this.box.hidden = true;
  }
}

export const tip = new Tip();
