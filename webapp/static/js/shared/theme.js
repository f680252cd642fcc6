// Theme: auto → light → dark, stored in a cookie. Charts listen to `ty:theme` and read their colours again.
import { keep } from "./cookies.js";
import { closest, findAll } from "./elements.js";

const ORDER = ["auto", "light", "dark"];
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

/** @param {string} theme */
function show(theme) {
  root.dataset.theme = theme;
  root.dataset.bsTheme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
  for (const button of findAll(document, "[data-theme-toggle]", HTMLElement)) {
    button.title = `Theme: ${theme}`;
    button.setAttribute("aria-label", button.title);
  }
  document.dispatchEvent(new CustomEvent("ty:theme", { detail: theme }));
}

document.addEventListener("click", (event) => {
  if (!closest(event, "[data-theme-toggle]")) return;
  const next = ORDER[(ORDER.indexOf(root.dataset.theme ?? "") + 1) % ORDER.length];
  keep("theme", next);
  show(next);
});
system.addEventListener("change", () => show(root.dataset.theme ?? "auto"));
