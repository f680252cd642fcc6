// Shows the progress of an upload. Without this script the browser submits the form by itself.
import { showSampleOf } from "./dataset-sample.js";
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
  const [main] = findAll(page, "main", HTMLElement);
  if (!main) {
    // Not a page of ours, for example a proxy's that refuses large files.
    fail(`The server answered ${request.status} ${request.statusText}`.trim());
    return;
  }
  find(document, "main", HTMLElement).replaceWith(main);
  findAll(document, "[data-problems]", HTMLElement)[0]?.focus();
  start();
}

/**
 * Offer to upload the file again.
 * @param {string} why
 */
function fail(why) {
  setStatus(`${why}. Upload the file again.`);
  for (const button of findAll(document, "form[data-upload] button", HTMLButtonElement)) button.disabled = false;
}

/** @param {HTMLFormElement} form */
function send(form) {
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", show);
  request.addEventListener("load", () => arrive(request));
  request.addEventListener("error", () => fail("The connection was lost"));
  place().hidden = false;
  for (const button of findAll(form, "button", HTMLButtonElement)) button.disabled = true;
  request.open("POST", form.action);
  request.send(new FormData(form));
}

function start() {
  for (const form of findAll(document, "form[data-upload]", HTMLFormElement)) {
    showSampleOf(form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      send(form);
    });
  }
}

start();
