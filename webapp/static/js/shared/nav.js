// The navigation folds to its icons on wide screens.
import { keep } from "./cookies.js";
import { closest } from "./elements.js";

document.addEventListener("click", (event) => {
  if (!closest(event, "[data-nav-toggle]")) return;
  const folded = document.documentElement.dataset.nav !== "collapsed";
  document.documentElement.dataset.nav = folded ? "collapsed" : "";
  keep("nav", folded ? "collapsed" : "");
});
// Where the row of tabs is wider than the screen, the open tab is scrolled into view.
document.querySelector(".ty-tabs .active")?.scrollIntoView({ block: "nearest", inline: "center" });
