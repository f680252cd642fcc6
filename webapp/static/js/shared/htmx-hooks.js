// htmx: every change carries the CSRF token, and relative times in new parts of a page are shown at once.
import { refuse } from "./connection/notice.js";
import { answers, ask } from "./connection/server.js";
import { isLoggedIn } from "./connection/session.js";
import { csrfToken } from "./post.js";
import { refresh } from "./time.js";
import { toast } from "./toasts.js";

/**
 * @typedef {{ sourceEvent?: Event, request: { method?: string, headers: Record<string, string> } }} RequestContext
 * @typedef {CustomEvent<{ ctx: RequestContext }>} RequestEvent
 */

document.addEventListener("htmx:config:request", (event) => {
  const { request } = /** @type {RequestEvent} */ (event).detail.ctx;
  if (!["GET", "HEAD"].includes((request.method ?? "GET").toUpperCase())) {
    request.headers["X-CSRFToken"] = csrfToken();
  }
});
// While the server does not answer or the session has ended, nothing is requested: parts that follow the server wait, and
// a click is answered by the notice.
document.addEventListener("htmx:before:request", (event) => {
  if (answers() && isLoggedIn()) return;
  event.preventDefault();
  if (/** @type {RequestEvent} */ (event).detail.ctx.sourceEvent?.isTrusted) refuse("Nothing was changed");
});
document.addEventListener("htmx:after:swap", ({ target }) =>
  refresh((target instanceof Element && target.parentElement) || document),
);
document.addEventListener("htmx:error", async () => {
  if (await ask()) toast("The server did not answer. Try again.", { level: "error" });
});
