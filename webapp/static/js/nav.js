// The navigation folds to its icons on wide screens.
import { keep } from "./cookies.js";

document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-nav-toggle]")) return;
  const folded = document.documentElement.dataset.nav !== "collapsed";
  document.documentElement.dataset.nav = folded ? "collapsed" : "";
  keep("nav", folded ? "collapsed" : "");
});
// The open tab is in sight where the row of tabs is wider than the screen.
document.querySelector(".ty-tabs .active")?.scrollIntoView({ block: "nearest", inline: "center" });
