// Fetches a part of a page. Without the header, the server would answer a person who is logged out with the login page,
// which would be shown as the part.

const UNAUTHENTICATED = 401;

/**
 * Fetch a part of a page, and report the end of the session if the server refuses it for that.
 * @param {string} address
 * @param {RequestInit & { headers?: Record<string, string> }} [options]
 * @throws {DOMException} if it is aborted
 * @throws {TypeError} if the server does not answer
 */
export async function fetchPart(address, options = {}) {
  const response = await fetch(address, { ...options, headers: { ...options.headers, "HX-Request": "true" } });
  if (response.status === UNAUTHENTICATED) document.dispatchEvent(new Event("ty:logout"));
  return response;
}
