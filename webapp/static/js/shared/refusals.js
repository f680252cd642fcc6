// Refusals and warnings stay on the page until they are dismissed or the next attempt. One that names a field is shown
// there; the others are below the bar of the frame, which stays in view, or in the open dialog.
import { byId, closest, find, findAll } from "./elements.js";

const ALL = ".ty-refusal";
/** A part of the page that follows the server and would lose an added element. */
const FOLLOWS = "[hx-trigger^='every']";

/**
 * Show a refusal, or one like it only once.
 * @param {string} text
 * @param {string} level
 */
export function showRefusal(text, level) {
  const dialog = document.querySelector("dialog[open]");
  const frame = byId("refusals", HTMLElement);
  const place = dialog ?? frame;
  if (findAll(place, `${ALL} [data-text]`, HTMLElement).some((shown) => shown.textContent === text)) return;
  const made = find(frame, "template", HTMLTemplateElement).content.cloneNode(true);
  const element = find(/** @type {DocumentFragment} */ (made), ALL, HTMLElement);
  element.dataset.level = level;
  find(element, "[data-text]", HTMLElement).textContent = text;
  place.prepend(element);
}

/** @param {HTMLElement} element */
function remove(element) {
  for (const field of findAll(document, `[aria-describedby~="${element.id}"]`, HTMLElement)) {
    field.removeAttribute("aria-invalid");
    const ids = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id && id !== element.id);
    field.setAttribute("aria-describedby", ids.join(" "));
  }
  element.remove();
}

/**
 * Find the form with an address, and its field with a name.
 * @param {string} at an address with the name behind `#`
 */
function formAndField(at) {
  const { pathname, hash } = new URL(at, location.href);
  const forms = findAll(document, "main form:is([method=post], [data-start])", HTMLFormElement);
  const form = forms.find(
    (each) => new URL(each.getAttribute("action") || location.href, location.href).pathname === pathname,
  );
  const named = form?.elements.namedItem(decodeURIComponent(hash.slice(1)));
  return { form, field: named instanceof HTMLElement && named.getAttribute("type") !== "hidden" ? named : null };
}

/**
 * Put a refusal where the person was.
 * @param {HTMLElement} element
 * @param {number} index
 */
function place(element, index) {
  element.id = `refusal-${index}`;
  const { form, field } = formAndField(element.dataset.at ?? "");
  form?.scrollIntoView({ block: "center" });
  if (field && form && !field.closest(FOLLOWS)) {
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", `${field.getAttribute("aria-describedby") ?? ""} ${element.id}`.trim());
    (field.closest(".ty-field, .ty-check") ?? form).after(element);
  }
  element.focus({ preventScroll: true });
}

findAll(document, ALL, HTMLElement).forEach((element, index) => {
  if (element.dataset.at) place(element, index);
  else element.focus();
});
document.addEventListener("click", (event) => {
  const refusal = closest(event, "[data-dismiss]")?.closest(ALL);
  if (refusal instanceof HTMLElement) remove(refusal);
});
// The next attempt has its own answer.
document.addEventListener("submit", (event) => {
  if (!event.defaultPrevented) findAll(document, ALL, HTMLElement).forEach(remove);
});
