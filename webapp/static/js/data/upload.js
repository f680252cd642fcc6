// Uploads the file of a form in parts. Without this script the browser submits the form by itself.

import { address } from "../shared/addresses.js";
import { find, findAll } from "../shared/elements.js";
import { toast } from "../shared/toasts.js";
import { showSampleOf } from "./dataset-sample.js";
import { ProgressBar } from "./upload-progress.js";
import { deleteUpload, forgetUploads, Transfer } from "./upload-transfer.js";

/** @param {HTMLFormElement} form */
const tokenOf = (form) => find(form, "[name=csrfmiddlewaretoken]", HTMLInputElement).value;

class UploadForm {
  /** @type {Transfer | null} */ #transfer = null;
  #isPaused = false;
  #project = "";
  /** @type {Map<File, string>} The ids of files that have arrived, and are in no version yet. */
  #arrived = new Map();

  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.bar = new ProgressBar(find(form, "[data-sending]", HTMLElement));
    this.input = find(form, "input[type=file]", HTMLInputElement);
    this.pauseButton = find(form, "[data-pause]", HTMLButtonElement);
    for (const hint of findAll(form, "[data-with-script]", HTMLElement)) hint.hidden = false;
    form.addEventListener("submit", (event) => this.#submit(event));
    this.pauseButton.addEventListener("click", () => (this.#isPaused ? this.#resume() : this.#pause("Paused.")));
    find(form, "[data-cancel]", HTMLButtonElement).addEventListener("click", () => this.#cancel());
    window.addEventListener("online", () => this.#isPaused && this.bar.place.dataset.lost && this.#resume());
    // A paused upload, and one whose connection was lost, are listed on this page and can be continued.
    addEventListener("beforeunload", (event) => {
      if (this.#transfer && !this.#isPaused) event.preventDefault();
    });
    this.input.addEventListener("change", () => this.#order());
    addEventListener("pageshow", ({ persisted }) => this.#comeBack(persisted));
    this.#acceptDrops(find(form, "[data-drop]", HTMLElement));
  }

  /**
   * Follow the files that the browser restores after Back. It reports no change, also not if the same ones are chosen again.
   * @param {boolean} isKept whether the page is as it was left
   */
  #comeBack(isKept) {
    if (isKept) {
      const isSent = !this.#transfer && find(this.form, "[data-send]", HTMLButtonElement).disabled;
      if (isSent) location.reload();
    } else if (this.#files.length) this.input.dispatchEvent(new Event("change"));
  }

  get #files() {
    return [...(this.input.files ?? [])];
  }

  /** Put several files in the order of their names, and show it. */
  #order() {
    const files = this.#files.sort((one, other) => one.name.localeCompare(other.name, "en", { numeric: true }));
    const place = find(this.form, "[data-order]", HTMLElement);
    place.hidden = files.length < 2;
    const entries = files.map((file) => Object.assign(document.createElement("li"), { textContent: file.name }));
    find(place, "ol", HTMLOListElement).replaceChildren(...entries);
    if (files.length < 2) return;
    const ordered = new DataTransfer();
    for (const file of files) ordered.items.add(file);
    this.input.files = ordered.files;
  }

  /** @param {SubmitEvent} event */
  #submit(event) {
    event.preventDefault();
    if (this.#transfer) return;
    if (!this.#files.length) {
      // The form is shown again, and names files that have been received.
      this.#post([]);
      return;
    }
    const input = this.form.elements.namedItem("project"); // hidden if there is one project
    const isField = input instanceof HTMLSelectElement || input instanceof HTMLInputElement;
    const project = this.form.dataset.project ?? (isField ? input.value : "");
    if (project !== this.#project) this.#arrived.clear();
    this.#project = project;
    this.#setBusy(true);
    this.#sendNext();
  }

  /** Send the next file; create the version once all have arrived. */
  #sendNext() {
    const files = this.#files;
    const file = files.find((each) => !this.#arrived.has(each));
    if (!file) {
      this.#post(files.map((each) => this.#arrived.get(each) ?? ""));
      return;
    }
    const before = files.slice(0, files.indexOf(file)).reduce((sum, each) => sum + each.size, 0);
    const total = files.reduce((sum, each) => sum + each.size, 0);
    this.bar.show(before, total);
    this.bar.announce(files.length > 1 ? `Sending ${file.name}.` : "Sending the file.");
    const report = {
      progress: (/** @type {number} */ sent) => this.bar.show(before + sent, total),
      interrupted: (/** @type {string} */ why) => this.#interrupt(why),
      refused: (/** @type {string} */ why) => this.#end(files.length > 1 ? `${file.name}: ${why}` : why),
      arrived: (/** @type {string} */ id) => {
        this.#arrived.set(file, id);
        this.#sendNext();
      },
    };
    const taken = [...this.#arrived.values()];
    this.#transfer = new Transfer(file, this.#project, tokenOf(this.form), report, taken);
    this.#transfer.start();
  }

  /** @param {string} why */
  #interrupt(why) {
    this.bar.place.dataset.lost = "1";
    this.#setPaused(`${why} Press Continue to send the rest.`);
  }

  /** @param {string} text */
  async #pause(text) {
    this.#setPaused(text);
    await this.#transfer?.pause();
  }

  /** @param {string} text */
  #setPaused(text) {
    this.#isPaused = true;
    this.bar.pause();
    this.bar.announce(text);
    this.pauseButton.textContent = "Continue";
  }

  #resume() {
    this.#isPaused = false;
    delete this.bar.place.dataset.lost;
    this.bar.announce("Sending the file.");
    this.pauseButton.textContent = "Pause";
    this.#transfer?.start();
  }

  async #cancel() {
    await this.#transfer?.cancel();
    this.#end("The upload was cancelled.");
  }

  /**
   * Offer to upload again.
   * @param {string} why
   */
  #end(why) {
    this.#transfer = null;
    this.#isPaused = false;
    this.pauseButton.textContent = "Pause";
    this.bar.pause();
    this.#setBusy(false);
    this.bar.announce(why);
  }

  /** @param {boolean} isBusy */
  #setBusy(isBusy) {
    this.bar.place.hidden = false;
    find(this.form, "[data-send]", HTMLButtonElement).disabled = isBusy;
    for (const name of ["[data-pause]", "[data-cancel]"]) {
      find(this.form, name, HTMLButtonElement).hidden = !isBusy;
    }
    for (const field of findAll(this.form, "input[type=file], select[name=project]", HTMLElement)) {
      // Not `disabled`, which would leave the project out of the form.
      field.toggleAttribute("inert", isBusy);
    }
  }

  /**
   * Create the version of files that have been received.
   * @param {string[]} uploads their ids; empty if the form has them
   */
  #post(uploads) {
    this.#transfer = null;
    this.#setBusy(true);
    for (const name of ["[data-pause]", "[data-cancel]"]) find(this.form, name, HTMLButtonElement).hidden = true;
    this.bar.announce("Uploaded; checking the file …");
    const fields = new FormData(this.form);
    fields.delete("file");
    if (uploads.length) fields.delete("upload");
    for (const upload of uploads) fields.append("upload", upload);
    const request = new XMLHttpRequest();
    request.addEventListener("load", () => this.#arrive(request, fields.getAll("upload").map(String)));
    request.addEventListener("error", () => this.#end("The connection was lost. Press Upload again."));
    request.open("POST", this.form.action);
    request.send(fields);
  }

  /**
   * Show the response: the page of the new version, or this form with its errors.
   * @param {XMLHttpRequest} request
   * @param {string[]} uploads the ids of the files that were sent
   */
  async #arrive(request, uploads) {
    // A response has no fragment; this page has one after a link to a field.
    if (request.responseURL && request.responseURL !== location.href.split("#")[0]) {
      // The login of an expired session has made no version: the files are found again after it.
      const isVersion =
        request.status === 200 && !new URL(request.responseURL).pathname.startsWith(address("/accounts/"));
      if (isVersion) await forgetUploads(uploads).catch(() => null);
      location.assign(request.responseURL);
      return;
    }
    const page = new DOMParser().parseFromString(request.responseText, "text/html");
    const [main] = findAll(page, "main", HTMLElement);
    if (!main) {
      // Not a page of ours.
      this.#end(`The server answered ${request.status} ${request.statusText}`.trim());
      return;
    }
    find(document, "main", HTMLElement).replaceWith(main);
    findAll(document, "[data-problems]", HTMLElement)[0]?.focus();
    start();
  }

  /** @param {HTMLElement} place */
  #acceptDrops(place) {
    for (const kind of ["dragenter", "dragover"]) {
      place.addEventListener(kind, (event) => {
        event.preventDefault();
        place.classList.add("is-over");
      });
    }
    for (const kind of ["dragleave", "drop"]) place.addEventListener(kind, () => place.classList.remove("is-over"));
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      if (this.#transfer || !event.dataTransfer?.files.length) return;
      this.input.files = event.dataTransfer.files;
      this.input.dispatchEvent(new Event("change"));
    });
  }
}

/** @param {HTMLButtonElement} button */
function offerDeletion(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    const [form] = findAll(document, "form[data-upload]", HTMLFormElement);
    const refusal = form ? await deleteUpload(button.dataset.deleteUpload ?? "", tokenOf(form)) : "";
    button.disabled = false;
    if (refusal) toast(refusal, { level: "error" });
    else button.closest("li")?.remove();
  });
}

function start() {
  for (const form of findAll(document, "form[data-upload]", HTMLFormElement)) {
    new UploadForm(form);
    // After the files are in order: it shows the first one.
    showSampleOf(form);
  }
  for (const button of findAll(document, "[data-delete-upload]", HTMLButtonElement)) offerDeletion(button);
}

start();
