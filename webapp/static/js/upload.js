// Shows how far an upload has come. The form works without: then the browser sends it by itself.
const form = document.querySelector("form[data-upload]");
const place = () => document.querySelector("[data-sending]");

function show(event) {
  if (!event.lengthComputable) return;
  const percent = Math.floor((100 * event.loaded) / event.total);
  place().querySelector("progress").value = percent;
  const millions = (bytes) => (bytes / 1e6).toFixed(1);
  place().querySelector("[data-sent]").textContent =
    percent < 100 ? `${millions(event.loaded)} of ${millions(event.total)} MB` : "Arrived; checking it …";
}

/** The answer is a page: the new version's, or this form with what is to be mended. */
function arrive(request) {
  if (request.responseURL && request.responseURL !== location.href) {
    location.assign(request.responseURL);
    return;
  }
  const answer = new DOMParser().parseFromString(request.responseText, "text/html");
  document.querySelector("main").replaceWith(answer.querySelector("main"));
  document.querySelector("[data-problems]")?.focus();
  start(document.querySelector("form[data-upload]"));
}

function send(event) {
  event.preventDefault();
  const sending = event.currentTarget;
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", show);
  request.addEventListener("load", () => arrive(request));
  request.addEventListener("error", () => {
    place().querySelector("[data-sent]").textContent = "The connection broke: send it again.";
    for (const button of sending.querySelectorAll("button")) button.disabled = false;
  });
  place().hidden = false;
  for (const button of sending.querySelectorAll("button")) button.disabled = true;
  request.open("POST", sending.action);
  request.send(new FormData(sending));
}

function start(element) {
  element?.addEventListener("submit", send);
}

start(form);
