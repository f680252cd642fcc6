// htmx: every change carries the CSRF token, and relative times in new parts of a page are shown at once.
import { closest } from "./elements.js";
import { csrfToken } from "./post.js";
import { refresh } from "./time.js";
import { toast } from "./toasts.js";

/** @typedef {CustomEvent<{ ctx: { request: { method?: string, headers: Record<string, string> } } }>} RequestEvent */

document.addEventListener("htmx:config:request", (event) => {
  const { request } = /** @type {RequestEvent} */ (event).detail.ctx;
  if (!["GET", "HEAD"].includes((request.method ?? "GET").toUpperCase())) {
    request.headers["X-CSRFToken"] = csrfToken();
  }
});
// A part marked data-calm is not fetched again while a field in it has the focus.
document.addEventListener("htmx:before:request", (event) => {
  const focused = document.activeElement;
  if (closest(event, "[data-calm]")?.contains(focused) && focused?.matches("input, select, textarea")) {
    event.preventDefault();
  }
});
document.addEventListener("htmx:after:swap", ({ target }) =>
  refresh((target instanceof Element && target.parentElement) || document),
);
document.addEventListener("htmx:error", () => toast("The server did not answer.", { level: "error" }));
