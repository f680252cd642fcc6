// The part of the form for own code: version, entry, arguments of the constructor, and the dry build of the model.

/** @import { CodeEntry, DryBuild, Origin, Parameter } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { address } from "../../shared/addresses.js";
import { askLogin } from "../../shared/connection/session.js";
import { find } from "../../shared/elements.js";
import { csrfToken } from "../../shared/post.js";
import { followed } from "./declared-space.js";
import { offer } from "./inputs.js";
import { own } from "./pointer.js";
import { FIT } from "./sheet.js";

const WAIT = 500;
const AGAIN = 1500;
const ONE_CALL = "A training is one call of fit: one that is paused, stopped or lost begins again.";
const ENDED = ["completed", "failed", "stopped"];

/** @param {unknown} value */
const shown = (value) => (value === undefined ? "" : typeof value === "string" ? value : JSON.stringify(value));

/**
 * Return a value that was typed: JSON where it is, else a text.
 * @param {string} text
 */
function typed(text) {
  const trimmed = text.trim();
  if (!trimmed) return undefined;
  if (trimmed === "True" || trimmed === "False") return trimmed === "True";
  try {
    return JSON.parse(trimmed);
  } catch {
    return trimmed.replace(/^'(.*)'$/, "$1");
  }
}

/** @param {number | null} job */
function linkTo(job) {
  if (job === null) return "no job yet";
  return Object.assign(document.createElement("a"), { href: address(`/jobs/${job}`), textContent: `job ${job}` });
}

export class OwnCode {
  timer = 0;
  /** The rows that the last dry build of this entry declared. @type {Parameter[] | null} */
  declared = null;
  /** The request whose answer is shown, as JSON. */
  asked = "";
  hasFailed = false;
  /** @type {AbortController | null} */
  running = null;

  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.sheet = sheet;
    this.group = find(form, "[data-own-code]", HTMLElement);
    this.submit = find(form, "[name=do][value=submit]", HTMLButtonElement);
    this.needsTrainer = find(form, "[data-needs-trainer]", HTMLElement);
    this.digest = find(this.group, "[data-own=digest]", HTMLSelectElement);
    this.entry = find(this.group, "[data-own=entry]", HTMLSelectElement);
    this.normalize = find(this.group, "[data-own=normalize]", HTMLInputElement);
    this.arguments = find(this.group, "[data-own-arguments]", HTMLElement);
    this.state = find(this.group, "[data-own-state]", HTMLElement);
    this.notes = find(this.group, "[data-own-notes]", HTMLElement);
    this.again = find(this.group, "[data-own-again]", HTMLButtonElement);
    this.data = find(form, "[data-code-data]", HTMLElement);
    this.group.addEventListener("input", (event) => this.onInput(event));
    this.again.addEventListener("click", () => this.ask(true));
    sheet.onChange((from) => this.follow(from));
    this.follow("start");
  }

  get isChosen() {
    return this.sheet.spec.model?.kind === "code";
  }

  get version() {
    return this.sheet.known.code.versions.find((one) => one.digest === this.sheet.spec.model?.digest);
  }

  /** @returns {CodeEntry | undefined} */
  get chosen() {
    return this.version?.entries.find((one) => one.entry === this.sheet.spec.model?.entry);
  }

  /** @param {Event} event */
  onInput(event) {
    const { target } = event;
    if (target === this.digest) this.choose(JSON.parse(this.digest.value), undefined);
    else if (target === this.entry) this.choose(this.sheet.spec.model?.digest, JSON.parse(this.entry.value));
    else if (target === this.normalize) this.sheet.put("/model/normalize", this.normalize.checked || undefined);
    else if (target instanceof HTMLInputElement && target.dataset.argument !== undefined)
      this.sheet.put(`/model/args/${target.dataset.argument}`, typed(target.value));
  }

  /**
   * @param {string | undefined} digest
   * @param {string | undefined} entry
   */
  choose(digest, entry) {
    this.declared = null;
    this.sheet.edit((spec) => {
      const version = this.sheet.known.code.versions.find((one) => one.digest === digest);
      const first = version?.entries[0]?.entry;
      const { normalize } = spec.model ?? {};
      spec.model = { kind: "code", digest, entry: entry ?? first, ...(normalize === undefined ? {} : { normalize }) };
      if (spec.search) delete spec.search.space;
    });
  }

  /** @param {Origin} from */
  follow(from) {
    this.group.hidden = !this.isChosen;
    // Drafts may be saved without the right to run code.
    this.submit.disabled = this.isChosen && !this.sheet.known.code.mayRun;
    this.needsTrainer.hidden = !this.submit.disabled;
    this.showData();
    if (!this.isChosen) {
      this.forget();
      return;
    }
    const { versions } = this.sheet.known.code;
    const { digest, entry } = this.sheet.spec.model ?? {};
    offer(
      this.digest,
      versions.map((one) => one.digest),
      { label: (own) => versions.find((one) => one.digest === own)?.label ?? String(own).slice(0, 8) },
    );
    this.digest.value = JSON.stringify(digest);
    offer(
      this.entry,
      (this.version?.entries ?? []).map((one) => one.entry),
    );
    this.entry.value = JSON.stringify(entry);
    this.normalize.checked = this.sheet.spec.model?.normalize === true;
    if (from !== "field") this.drawArguments();
    this.schedule();
  }

  /** Show which data set the code has loaded or was used with, or where its data can be loaded. */
  showData() {
    const found = this.isChosen ? this.version?.data : null;
    const { project, lastUsed } = this.sheet.known;
    const isAsLast = this.isChosen && lastUsed !== "" && this.sheet.spec.data?.dataset === lastUsed;
    this.data.hidden = !found && !isAsLast;
    if (isAsLast)
      this.data.textContent = `The last experiment with this code used “${lastUsed}”, which is chosen here.`;
    if (!found || isAsLast) return;
    const link = Object.assign(document.createElement("a"), {
      href: address(`/code/${this.version?.digest}?project=${project}#data`),
      textContent: found.dataset ? "Load again" : "Load its data",
    });
    const text = found.dataset
      ? `The newest data that load_data of the code has loaded are “${found.dataset}”. `
      : "The code has a function load_data. Its rows become a data set once they are loaded: ";
    this.data.replaceChildren(text, link);
  }

  forget() {
    clearTimeout(this.timer);
    this.running?.abort();
    this.asked = "";
    this.declared = null;
    this.sheet.built = null;
  }

  drawArguments() {
    const given = /** @type {Record<string, unknown>} */ (this.sheet.spec.model?.args ?? {});
    const known = this.chosen?.arguments ?? [];
    const others = Object.keys(given).filter((name) => !known.some((one) => one.name === name));
    const all = [...known, ...others.map((name) => ({ name, default: null }))];
    this.arguments.replaceChildren(
      ...all.map((argument) => {
        const field = Object.assign(document.createElement("div"), { className: "ty-field" });
        field.dataset.field = "";
        const id = `at/spec/model/args/${argument.name}`;
        const label = Object.assign(document.createElement("label"), {
          className: argument.default === null ? "form-label required" : "form-label",
          textContent: argument.name,
          htmlFor: id,
        });
        const input = Object.assign(document.createElement("input"), {
          className: "form-control",
          id,
          placeholder: argument.default ?? "",
          value: shown(own(given, argument.name)),
        });
        input.dataset.argument = argument.name;
        field.append(label, input);
        return field;
      }),
    );
  }

  request() {
    const { digest, entry, args = {}, normalize = false } = this.sheet.spec.model ?? {};
    const { split: _, ...data } = this.sheet.spec.data ?? {};
    return { digest, body: { project: this.sheet.known.project, entry, args, normalize, data } };
  }

  /** Ask for a dry build a moment after the last change of the model or its data. */
  schedule() {
    const wanted = JSON.stringify(this.request());
    if (wanted === this.asked) return;
    clearTimeout(this.timer);
    this.running?.abort();
    this.sheet.built = null;
    this.show("");
    const { digest, entry } = this.sheet.spec.model ?? {};
    if (!digest || !entry || !this.sheet.known.code.mayRun) {
      this.asked = wanted;
      if (!this.sheet.known.code.mayRun) this.show("Submitting takes the role trainer: it runs own code.");
      return;
    }
    if (!this.sheet.spec.data?.dataset) {
      this.asked = wanted;
      this.show("The model is built once a data set is chosen, in the step Data.");
      return;
    }
    this.timer = setTimeout(() => {
      this.asked = wanted;
      this.ask(false);
    }, WAIT);
  }

  /** Ask for the dry build that was refused before a login. */
  resume() {
    if (this.isChosen) this.schedule();
  }

  /**
   * @param {boolean} again
   * @param {boolean} wasRefused whether the same request was refused before
   * @returns {Promise<void>}
   */
  async ask(again, wasRefused = false) {
    const { digest, body } = this.request();
    this.running = new AbortController();
    const { signal } = this.running;
    try {
      const response = await fetch(address(`/api/v1/code/${digest}/dry-builds`), {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-CSRFToken": csrfToken() },
        body: JSON.stringify({ ...body, again }),
        signal,
      });
      if (response.status === 401 && !wasRefused) {
        const isLoggedIn = await askLogin();
        // Another model may have been chosen meanwhile.
        if (signal.aborted) return;
        if (isLoggedIn) return this.ask(again, true);
        this.asked = "";
        return this.show("You are logged out. The model is built after the login.");
      }
      const result = await response.json();
      if (!response.ok) return this.show(`The model cannot be built: ${result.errors?.[0]?.message ?? result.detail}`);
      this.take(result);
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") return;
      this.timer = setTimeout(() => this.ask(false), AGAIN);
    }
  }

  /** @param {DryBuild} found */
  take(found) {
    const { state, built, job, error } = found;
    // A spec whose dry build has failed is refused, until it is done again.
    const hasFailed = state === "failed";
    if (hasFailed !== this.hasFailed) this.sheet.dispatchEvent(new Event("rebuilt"));
    this.hasFailed = hasFailed;
    if (state === "completed" && built) {
      const { space, parameters, builds, most_builds: most } = built;
      this.show(
        `The code declares ${space.length} hyperparameter${space.length === 1 ? "" : "s"}, found by ${builds} builds of ` +
          `at most ${most}. With default values the model has ${parameters.toLocaleString("en")} parameters.`,
        built.one_call ? [...built.notes, ONE_CALL] : built.notes,
      );
      this.accept(found);
    } else if (ENDED.includes(state)) {
      const data = this.sheet.spec.data?.dataset;
      const end = error ? `failed: ${error.message}` : `is ${state}`;
      this.show([`The dry build (on “${data}”, `, linkTo(job), `) ${end}`]);
      this.again.hidden = false;
    } else {
      this.show(["Building the model in a sandbox (", linkTo(job), `, ${state})… ${found.why_waiting}`]);
      this.timer = setTimeout(() => this.ask(false), AGAIN);
    }
  }

  /**
   * Offer the declared space, and drop what has no effect on the model.
   * @param {DryBuild} found
   */
  accept({ built, unused }) {
    if (!built) return;
    /** @param {object} row */
    const clean = (row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null));
    const space = built.space.map(clean);
    this.sheet.built = {
      ranges: Object.fromEntries(space.map((row) => [row.name, row])),
      unused,
      metrics: built.metrics.filter((name) => name.startsWith("val_")),
    };
    const before = this.declared;
    this.declared = space;
    this.sheet.edit((spec) => {
      if (spec.search) spec.search.space = followed(this.sheet.space, before, space);
      const sections = /** @type {Record<string, Record<string, unknown> | undefined>} */ (spec);
      for (const pointer of Object.keys(unused)) {
        const [, section, field] = pointer.split("/");
        delete sections[section]?.[field];
      }
      if (spec.search?.space)
        spec.search.space = spec.search.space.filter(
          ({ name = "" }) => !(name.startsWith(FIT) && this.sheet.isUnused(`/${name}`)),
        );
    });
  }

  /**
   * @param {string | (string | Node)[]} text
   * @param {string[]} notes
   */
  show(text, notes = []) {
    const parts = [text].flat();
    const words = parts.map((part) => (typeof part === "string" ? part : part.textContent)).join("");
    // The same words stay in place: a link that is replaced while it is pressed is not followed.
    if (words !== this.state.textContent) this.state.replaceChildren(...parts);
    this.again.hidden = true;
    this.notes.replaceChildren(
      ...notes.map((note) => Object.assign(document.createElement("li"), { textContent: note })),
    );
  }
}
