// Runs before the first paint: without a choice of theme the system's counts, and nothing flashes.
(() => {
  const root = document.documentElement;
  if (root.dataset.theme === "light" || root.dataset.theme === "dark") return;
  root.dataset.bsTheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
})();
