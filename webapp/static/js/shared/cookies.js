import { base } from "./addresses.js";

const YEAR = 365 * 24 * 3600;

/**
 * Store a choice about the look of pages in a cookie; the server reads it when it renders the next page.
 * @param {string} name
 * @param {string} value
 */
export function keep(name, value) {
  const secure = location.protocol === "https:" ? ";secure" : "";
  // Two installations on one host must not change each other's.
  const whole = `${name}${document.documentElement.dataset.cookies ?? ""}`;
  document.cookie = `${whole}=${value};path=${base() || "/"};max-age=${YEAR};samesite=lax${secure}`;
}
