// Shows the progress of an upload. Without this script the browser submits the form by itself.
import { find, findAll } from "./elements.js";

const place = () => find(document, "[data-sending]", HTMLElement);

/** @param {string} text */
function setStatus(text) {
  find(place(), "[data-sent]", HTMLElement).textContent = text;
}

/** @param {number} bytes */
const millions = (bytes) => (bytes / 1e6).toFixed(1);

/** @param {ProgressEvent} event */
function show(event) {
  if (!event.lengthComputable) return;
  const percent = Math.floor((100 * event.loaded) / event.total);
  find(place(), "progress", HTMLProgressElement).value = percent;
  setStatus(
    percent < 100 ? `${millions(event.loaded)} of ${millions(event.total)} MB` : "Uploaded; checking the file …",
  );
}

/**
 * Show the response: the page of the new version, or this form with its errors.
 * @param {XMLHttpRequest} request
 */
function arrive(request) {
  if (request.responseURL && request.responseURL !== location.href) {
    location.assign(request.responseURL);
    return;
  }
  const page = new DOMParser().parseFromString(request.responseText, "text/html");
  find(document, "main", HTMLElement).replaceWith(find(page, "main", HTMLElement));
  findAll(document, "[data-problems]", HTMLElement)[0]?.focus();
  start();
}

/** @param {HTMLFormElement} form */
function send(form) {
  const buttons = findAll(form, "button", HTMLButtonElement);
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", show);
  request.addEventListener("load", () => arrive(request));
  request.addEventListener("error", () => {
    setStatus("The connection was lost. Upload the file again.");
    for (const button of buttons) button.disabled = false;
  });
  place().hidden = false;
  for (const button of buttons) button.disabled = true;
  request.open("POST", form.action);
  request.send(new FormData(form));
}

function start() {
  for (const form of findAll(document, "form[data-upload]", HTMLFormElement)) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form);
    });
  }
}

start();
