// Finds elements of the page and checks that they are of the expected class.

/**
 * Return the first match, which the page must have.
 * @template {Element} T
 * @param {ParentNode} within
 * @param {string} selector
 * @param {new () => T} kind
 * @returns {T}
 */
export function find(within, selector, kind) {
  const found = within.querySelector(selector);
  if (found instanceof kind) return found;
  throw new TypeError(`No ${kind.name} matches ${selector}`);
}

/**
 * Return every match that is of the expected class.
 * @template {Element} T
 * @param {ParentNode} within
 * @param {string} selector
 * @param {new () => T} kind
 * @returns {T[]}
 */
export function findAll(within, selector, kind) {
  return /** @type {T[]} */ ([...within.querySelectorAll(selector)].filter((element) => element instanceof kind));
}

/**
 * Return the element with an id, which the page must have.
 * @template {Element} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new TypeError(`No ${kind.name} has the id ${id}`);
}

/**
 * Return the nearest element that matches, from the target of an event upwards.
 * @param {Event} event
 * @param {string} selector
 * @returns {HTMLElement | null}
 */
export function closest(event, selector) {
  const { target } = event;
  return target instanceof Element ? target.closest(selector) : null;
}
