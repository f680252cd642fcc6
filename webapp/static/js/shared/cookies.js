const YEAR = 365 * 24 * 3600;

/**
 * Store a choice about the look of pages in a cookie; the server reads it when it renders the next page.
 * @param {string} name
 * @param {string} value
 */
export function keep(name, value) {
  const secure = location.protocol === "https:" ? ";secure" : "";
  document.cookie = `${name}=${value};path=/;max-age=${YEAR};samesite=lax${secure}`;
}
