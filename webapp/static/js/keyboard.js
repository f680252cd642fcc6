// `/` and Ctrl-K search, j/k move through rows, x selects, Enter opens, c compares, ? tells all.
const TYPING = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable=true]";

function rows() {
  return [...document.querySelectorAll("table[data-rows] tbody tr")].filter((row) => row.offsetParent);
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const now = all.findIndex((row) => row.classList.contains("ty-here"));
  const next = Math.min(Math.max(now + step, 0), all.length - 1);
  if (next === now) {
    // A table that has further pages turns them, and says where we are then.
    all[now].dispatchEvent(new CustomEvent("ty:edge", { bubbles: true, detail: step }));
    return;
  }
  all[now]?.classList.remove("ty-here");
  all[next].classList.add("ty-here");
  all[next].scrollIntoView({ block: "nearest" });
}

const here = (selector) => document.querySelector(`.ty-here ${selector}`);

const KEYS = {
  "/": () => document.getElementById("search")?.focus(),
  "?": () => document.getElementById("keys")?.showModal(),
  j: () => move(1),
  k: () => move(-1),
  x: () => here("input[type=checkbox]")?.click(),
  Enter: () => (here("a[data-open]") ?? here("a"))?.click(),
  c: () => document.querySelector('[data-key="c"]')?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    KEYS["/"]();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(TYPING)) return;
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && (event.target.closest?.("a, button, summary, input") || !here("a"))) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-keys]")) KEYS["?"]();
});
