const YEAR = 365 * 24 * 3600;

/** Keep a choice about the looks of pages; the server reads it before it draws the next one. */
export function keep(name, value) {
  const secure = location.protocol === "https:" ? ";secure" : "";
  document.cookie = `${name}=${value};path=/;max-age=${YEAR};samesite=lax${secure}`;
}
