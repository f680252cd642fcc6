// Runs before the first paint: if no theme is chosen, the page takes the system's, without a flash of the other one.
(() => {
  const root = document.documentElement;
  if (root.dataset.theme === "light" || root.dataset.theme === "dark") return;
  root.dataset.bsTheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
})();
