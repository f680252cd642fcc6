// Search over everything, as one types: a combobox over the JSON of the search page.
const PAUSE = 120;
const box = document.querySelector("[data-search]");

if (box) {
  const input = box.querySelector("input");
  const list = box.querySelector("[role=listbox]");
  let timer = 0;
  let asked = null;
  let at = -1;

  const options = () => [...list.querySelectorAll("[role=option]")];

  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    at = -1;
  };

  const open = () => {
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
  };

  const choose = (index) => {
    const all = options();
    if (!all.length) return;
    at = (index + all.length) % all.length;
    all.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    input.setAttribute("aria-activedescendant", all[at].id);
    all[at].scrollIntoView({ block: "nearest" });
  };

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

  const find = async () => {
    const query = input.value.trim();
    if (!query) return close();
    asked?.abort();
    asked = new AbortController();
    try {
      const address = `${box.dataset.search}?q=${encodeURIComponent(query)}`;
      const headers = { Accept: "application/json" };
      const answer = await fetch(address, { signal: asked.signal, headers });
      if (answer.ok) show((await answer.json()).items, query);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(find, PAUSE);
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
    if (!box.contains(event.relatedTarget)) setTimeout(close, 150);
  });
}
