// Searches everything while one types: a combobox over the JSON of the search page.
import { find, findAll } from "./elements.js";

/** @typedef {{ url: string, kind: string, title: string, hint: string }} Item */

const PAUSE = 120;
const box = findAll(document, "[data-search]", HTMLElement)[0];

if (box) {
  const input = find(box, "input", HTMLInputElement);
  const list = find(box, "[role=listbox]", HTMLElement);
  let timer = 0;
  /** @type {AbortController | null} */
  let asked = null;
  let at = -1;

  const options = () => findAll(list, "[role=option]", HTMLElement);

  const close = () => {
    asked?.abort(); // its answer would open the list again
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    at = -1;
  };

  const open = () => {
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };

  /** @param {number} index */
  const choose = (index) => {
    const all = options();
    if (!all.length) return;
    at = (index + all.length) % all.length;
    all.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    input.setAttribute("aria-activedescendant", all[at].id);
    all[at].scrollIntoView({ block: "nearest" });
  };

  /**
   * @param {Item} item
   * @param {number} index
   */
  const line = (item, index) => {
    const option = document.createElement("a");
    option.className = "ty-result";
    option.id = `result-${index}`;
    option.href = item.url;
    option.tabIndex = -1;
    option.setAttribute("role", "option");
    option.setAttribute("aria-selected", "false");
    for (const [css, text] of [
      ["ty-result-kind", item.kind],
      ["ty-elide", item.title],
      ["text-secondary", item.hint],
    ]) {
      const span = document.createElement("span");
      span.className = css;
      span.textContent = text;
      option.append(span);
    }
    return option;
  };

  /**
   * @param {Item[]} items
   * @param {string} query
   */
  const show = (items, query) => {
    list.replaceChildren(...items.map(line));
    if (!items.length) {
      const none = document.createElement("div");
      none.className = "ty-result text-secondary";
      none.textContent = `Nothing found for “${query}”.`;
      list.append(none);
    }
    open();
    if (items.length) choose(0);
  };

  const search = async () => {
    const query = input.value.trim();
    if (!query) {
      close();
      return;
    }
    asked?.abort();
    asked = new AbortController();
    try {
      const address = `${box.dataset.search}?q=${encodeURIComponent(query)}`;
      const headers = { Accept: "application/json" };
      const response = await fetch(address, { signal: asked.signal, headers });
      if (response.ok) show((await response.json()).items, query);
    } catch (error) {
      if (!(error instanceof DOMException && error.name === "AbortError")) close();
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "Enter") options()[at]?.click();
    else if (event.key === "Escape") {
      close();
      input.blur();
    } else return;
    event.preventDefault();
  });
  box.addEventListener("focusout", (event) => {
    const next = event.relatedTarget;
    if (!(next instanceof Node && box.contains(next))) setTimeout(close, 150);
  });
}
