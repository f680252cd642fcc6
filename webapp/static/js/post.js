export function csrfToken() {
  return document.querySelector('meta[name="csrf-token"]').content;
}

/** Post a form without fields and follow where it leads, like a button would. */
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
  form.submit();
}
