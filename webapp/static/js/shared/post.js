import { find } from "./elements.js";

export function csrfToken() {
  return find(document, 'meta[name="csrf-token"]', HTMLMetaElement).content;
}

/**
 * Submit a form without fields, as a button would.
 * @param {string} url
 */
export function post(url) {
  const form = document.createElement("form");
  form.method = "post";
  form.action = url;
  for (const [name, value] of [
    ["csrfmiddlewaretoken", csrfToken()],
    ["next", location.pathname + location.search],
  ]) {
    const input = document.createElement("input");
    input.type = "hidden";
    input.name = name;
    input.value = value;
    form.append(input);
  }
  document.body.append(form);
  form.requestSubmit();
}
