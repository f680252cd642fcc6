// Small pieces of page: elements without markup strings, so that no text ever becomes markup.

/** Make an element; `null` and `false` attributes are left out, functions are listeners. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Change a text only where it differs: what is written anew is laid out anew. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const SVG = "http://www.w3.org/2000/svg";
const facts = () => JSON.parse(document.getElementById("trial-looks").textContent);
let looks = null;

export function icon(name, css = "") {
  looks ??= facts();
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `icon ${css}`);
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${looks.sprite}#${name}`);
  svg.append(use);
  return svg;
}

/** A state as icon, word and colour, as the server draws it. */
export function badge(state, title = "") {
  looks ??= facts();
  const look = looks.states[state];
  return el(
    "span",
    { class: `ty-state ty-tone-${look.tone}`, title: title || null },
    icon(look.icon, look.spins ? "ty-spin" : ""),
    look.word,
  );
}

/** A labelled choice; `options` are {value, label}. */
export function choice(label, options, value, change) {
  const select = el("select", { class: "form-select", change: () => change(select.value) });
  for (const option of options)
    select.append(el("option", { value: option.value, selected: option.value === value }, option.label));
  return el("label", { class: "ty-choice" }, el("span", {}, label), select);
}

/** An empty state: what is missing and what it needs. */
export function empty(title, hint, name = "flask") {
  return el(
    "div",
    { class: "empty ty-empty" },
    el("div", { class: "ty-empty-icon" }, icon(name)),
    el("p", { class: "empty-title" }, title),
    el("p", { class: "empty-subtitle text-secondary" }, hint),
  );
}
