// Lets the form for code take a folder: chosen, or dropped. Without this script it takes files and archives.
// The server allows fewer files in a form than in an archive: the form names that limit.
import { find, findAll } from "../shared/elements.js";

const LEFT_OUT = new Set(["__pycache__", "__MACOSX", "node_modules", "venv"]);

/**
 * @typedef {object} Chosen
 * @property {File} file
 * @property {string} path relative to the chosen folder, which is its first part
 */

/** @param {string} path */
const isLeftOut = (path) =>
  path.split("/").some((part) => part.startsWith(".") || LEFT_OUT.has(part)) || /\.py[co]$/.test(path);

/**
 * Return the entries of a folder; the browser returns at most a hundred at once.
 * @param {FileSystemDirectoryEntry} folder
 * @returns {Promise<FileSystemEntry[]>}
 */
async function entriesOf(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...some);
  }
}

/**
 * Collect the files below an entry, up to one more than a form may have.
 * @param {FileSystemEntry} entry
 * @param {Chosen[]} found
 * @param {number} most
 */
async function collect(entry, found, most) {
  const path = entry.fullPath.replace(/^\//, "");
  if (isLeftOut(path) || found.length > most) return;
  if (entry.isDirectory) {
    const inside = await entriesOf(/** @type {FileSystemDirectoryEntry} */ (entry));
    for (const each of inside) await collect(each, found, most);
    return;
  }
  const single = /** @type {FileSystemFileEntry} */ (entry);
  found.push({ file: await new Promise((resolve, reject) => single.file(resolve, reject)), path });
}

class CodeForm {
  /** @param {HTMLFormElement} form */
  constructor(form) {
    this.form = form;
    this.most = Number(form.dataset.codeFiles);
    this.input = find(form, "input[type=file]", HTMLInputElement);
    this.status = find(form, "[data-chosen]", HTMLElement);
    this.picker = Object.assign(document.createElement("input"), { type: "file", webkitdirectory: true });
    for (const part of findAll(form, "[data-with-script]", HTMLElement)) part.hidden = false;
    find(form, "[data-folder]", HTMLButtonElement).addEventListener("click", () => this.picker.click());
    this.picker.addEventListener("change", () => this.#pick());
    this.input.addEventListener("change", () => this.#take(this.#files.map((file) => ({ file, path: file.name }))));
    this.#acceptDrops(find(form, "[data-drop]", HTMLElement));
  }

  get #files() {
    return [...(this.input.files ?? [])];
  }

  #pick() {
    const files = [...(this.picker.files ?? [])].map((file) => ({ file, path: file.webkitRelativePath }));
    this.#take(files);
  }

  /**
   * Put chosen or dropped files into the form, without those that the server would leave out.
   * @param {Chosen[]} chosen
   * @param {boolean} hadAny whether there were some; a drop leaves them out earlier
   */
  #take(chosen, hadAny = chosen.length > 0) {
    const files = chosen.filter(({ path }) => !isLeftOut(path));
    const isTooMany = files.length > this.most;
    const kept = new DataTransfer();
    if (!isTooMany) for (const { file } of files) kept.items.add(file);
    this.input.files = kept.files;
    this.#show(isTooMany ? [] : files);
    if (isTooMany) this.status.textContent = `These are more than ${this.most} files: send them as a zip.`;
    else if (hadAny && !files.length) {
      this.status.textContent = "Nothing to send: hidden and compiled files are left out.";
    }
  }

  /**
   * Name the chosen files, and add their paths to the form: browsers send the last part alone.
   * @param {Chosen[]} files
   */
  #show(files) {
    for (const old of findAll(this.form, "input[name=path]", HTMLInputElement)) old.remove();
    for (const { path } of files) {
      this.form.append(Object.assign(document.createElement("input"), { type: "hidden", name: "path", value: path }));
    }
    const names = files.map(({ path }) => path);
    const more = names.length > 5 ? ` and ${names.length - 5} more` : "";
    this.status.textContent = names.length ? `Chosen: ${names.slice(0, 5).join(", ")}${more}` : "";
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
    place.addEventListener("drop", (event) => this.#drop(event));
  }

  /** @param {DragEvent} event */
  async #drop(event) {
    event.preventDefault();
    // All at once: the list of a drop is empty after the first pause.
    const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry());
    const files = [...(event.dataTransfer?.files ?? [])];
    /** @type {Chosen[]} */
    const found = [];
    try {
      for (const entry of entries) if (entry) await collect(entry, found, this.most);
    } catch (error) {
      this.status.textContent = `The folder cannot be read: ${error instanceof Error ? error.message : error}`;
      return;
    }
    // Not every drop has entries: then the files themselves are taken.
    this.#take(entries.some(Boolean) ? found : files.map((file) => ({ file, path: file.name })), true);
  }
}

for (const form of findAll(document, "form[data-code-files]", HTMLFormElement)) new CodeForm(form);
