// htmx: the CSRF token goes along with every change; times in new pieces are told at once.
import { csrfToken } from "./post.js";
import { refresh } from "./time.js";
import { toast } from "./toasts.js";

document.addEventListener("htmx:config:request", (event) => {
  const request = event.detail.ctx.request;
  if (!["GET", "HEAD"].includes((request.method ?? "GET").toUpperCase())) {
    request.headers["X-CSRFToken"] = csrfToken();
  }
});
// A piece marked data-calm is not fetched anew while somebody types in it.
document.addEventListener("htmx:before:request", (event) => {
  const piece = event.target.closest?.("[data-calm]");
  if (piece?.contains(document.activeElement) && document.activeElement.matches("input, select, textarea")) {
    event.preventDefault();
  }
});
document.addEventListener("htmx:after:swap", (event) => refresh(event.target.parentElement ?? document));
document.addEventListener("htmx:error", () => toast("The server did not answer.", { level: "error" }));
