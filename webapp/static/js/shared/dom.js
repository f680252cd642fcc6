// Makes elements without markup strings, so that no text ever becomes markup.

/** @import { Option } from "./charts/types.js" */
import { byId } from "./elements.js";

/** @typedef {Node | string | null | undefined | false} Child */
/** @typedef {string | number | boolean | null | undefined} Attribute */
/** @typedef {Record<string, Attribute | ((event: never) => unknown)>} Attributes */

/**
 * Make an element; `null` and `false` attributes are left out, functions are listeners.
 * @template {string} Name
 * @param {Name} name
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 * @returns {Name extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Name] : HTMLElement}
 */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, /** @type {EventListener} */ (value));
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return /** @type {ReturnType<typeof el<Name>>} */ (made);
}

/**
 * Change a text only if it differs: a text that is set again is laid out again.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SVG = "http://www.w3.org/2000/svg";
/** @typedef {{ tone: string, icon: string, word: string, spins: boolean }} StateLook */
/** @type {Record<string, StateLook> | null} */
let known = null;
/** The file of the icons: every page has icons in its navigation. */
const SPRITE = (document.querySelector("svg.icon use")?.getAttribute("href") ?? "").split("#")[0];

/** The look of each state, which the page contains as JSON. */
function looks() {
  known ??= /** @type {NonNullable<typeof known>} */ (JSON.parse(byId("trial-looks", HTMLElement).textContent));
  return known;
}

/**
 * @param {string} name
 * @param {string} css
 */
export function icon(name, css = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon ${css}`);
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${SPRITE}#${name}`);
  svg.append(use);
  return svg;
}

/**
 * Return a state as icon, word and colour, as the server draws it.
 * @param {string} state
 * @param {string} title
 */
export function badge(state, title = "") {
  const look = looks()[state];
  return el(
    "span",
    { class: `ty-state ty-tone-${look.tone}`, title: title || null },
    icon(look.icon, look.spins ? "ty-spin" : ""),
    look.word,
  );
}

/**
 * Return a labelled select.
 * @param {string} label
 * @param {Option[]} options
 * @param {string | undefined} value
 * @param {(value: string) => void} change
 */
export function choice(label, options, value, change) {
  const select = el("select", { class: "form-select" });
  select.addEventListener("change", () => change(select.value));
  for (const option of options)
    select.append(el("option", { value: option.value, selected: option.value === value }, option.label));
  return el("label", { class: "ty-choice" }, el("span", {}, label), select);
}

/**
 * Return an empty state: the missing thing and a way to get it.
 * @param {string} title
 * @param {string} hint
 * @param {string} name
 */
export function empty(title, hint, name = "flask") {
  return el(
    "div",
    { class: "empty ty-empty" },
    el("div", { class: "ty-empty-icon" }, icon(name)),
    el("p", { class: "empty-title" }, title),
    el("p", { class: "empty-subtitle text-secondary" }, hint),
  );
}
