// The dashboard may be below a path, such as /trainyard: each address that scripts write begins with it.

/**
 * Return the address of a page or a route.
 * @param {string} path as without such a path, beginning with a slash
 */
export const address = (path) => `${base()}${path}`;

/** Return the path of the public address; empty without one. */
export const base = () => document.documentElement.dataset.base ?? "";
