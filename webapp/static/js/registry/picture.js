// Shows the image that a person has chosen in the prediction form.

/** @param {HTMLInputElement} input */
function show(input) {
  const picture = input.parentElement?.querySelector("img");
  const file = input.files?.[0];
  if (!(picture instanceof HTMLImageElement)) return;
  picture.hidden = true;
  if (!file) return;
  const reader = new FileReader();
  // A file that is no image has no preview; the prediction server refuses it with the reason.
  picture.onload = () => {
    picture.hidden = false;
  };
  reader.onload = () => {
    if (input.files?.[0] === file) picture.src = String(reader.result);
  };
  reader.readAsDataURL(file);
}

document.addEventListener("change", (event) => {
  const input = event.target;
  if (input instanceof HTMLInputElement && input.matches("[data-picture]")) show(input);
});
