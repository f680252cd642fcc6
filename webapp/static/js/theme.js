// Theme: auto → light → dark, kept in a cookie. Charts listen to `ty:theme` and read their colours again.
import { keep } from "./cookies.js";

const ORDER = ["auto", "light", "dark"];
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");

function show(theme) {
  root.dataset.theme = theme;
  root.dataset.bsTheme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
  for (const button of document.querySelectorAll("[data-theme-toggle]")) {
    button.title = `Theme: ${theme}`;
    button.setAttribute("aria-label", button.title);
  }
  document.dispatchEvent(new CustomEvent("ty:theme", { detail: theme }));
}

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-toggle]")) return;
  const next = ORDER[(ORDER.indexOf(root.dataset.theme) + 1) % ORDER.length];
  keep("theme", next);
  show(next);
});
system.addEventListener("change", () => show(root.dataset.theme));
