// The JSON pane: the spec as text with line numbers, and problems at their lines.

/** @import { Problem, Spec } from "./types.js" */
/** @import { Sheet } from "./sheet.js" */
import { closest, find } from "../../shared/elements.js";
import { nearest, places, write } from "./pointer.js";

/** @typedef {{ line: number, offset: number, message: string }} Located */

export class JsonPane {
  /**
   * @param {HTMLFormElement} form
   * @param {Sheet} sheet
   */
  constructor(form, sheet) {
    this.sheet = sheet;
    this.text = find(form, ".ef-text", HTMLTextAreaElement);
    this.gutter = find(form, ".ef-gutter", HTMLElement);
    this.list = find(form, ".ef-json-problems", HTMLElement);
    this.broken = "";
    /** @type {Located[]} */
    this.problems = [];
    this.text.addEventListener("input", (event) => {
      event.stopPropagation(); // not a field: it replaces the whole spec
      form.dispatchEvent(new Event("input"));
      this.onText();
    });
    this.text.addEventListener("scroll", () => {
      this.gutter.scrollTop = this.text.scrollTop;
    });
    this.list.addEventListener("click", (event) => this.onJump(event));
    find(form, "[data-tidy]", HTMLElement).addEventListener("click", () => {
      if (!this.broken) this.rewrite();
    });
    sheet.onChange((from) => {
      if (from !== "text") this.rewrite();
    });
    this.rewrite();
  }

  rewrite() {
    const text = write(this.sheet.spec);
    if (text !== this.text.value) this.text.value = text;
    this.broken = "";
    this.number();
  }

  onText() {
    const { spec, message } = parsed(this.text.value);
    this.broken = message;
    if (spec) {
      this.sheet.replace(spec);
    } else {
      this.showProblems([]);
      this.sheet.dispatchEvent(new CustomEvent("broken", { detail: { message } }));
    }
    this.number();
  }

  /** Number the lines; those with a problem are marked. */
  number() {
    const marked = new Set(this.problems.map((problem) => problem.line));
    const count = this.text.value.split("\n").length;
    const lines = Array.from({ length: count }, (_, i) => {
      const line = document.createElement(marked.has(i + 1) ? "b" : "span");
      line.textContent = String(i + 1);
      return [line, "\n"]; // outside: the mark would swallow the break
    });
    this.gutter.replaceChildren(...lines.flat());
    this.gutter.scrollTop = this.text.scrollTop;
  }

  /** @param {Problem[]} problems */
  showProblems(problems) {
    this.problems = this.broken ? [this.syntaxProblem()] : this.located(problems);
    this.list.replaceChildren(...this.problems.map((problem) => this.item(problem)));
    this.text.setAttribute("aria-invalid", this.problems.length ? "true" : "false");
    this.number();
  }

  /** @returns {Located} */
  syntaxProblem() {
    const before = this.text.value.slice(0, Number(/position (\d+)/.exec(this.broken)?.[1] ?? this.text.value.length));
    return { line: before.split("\n").length, offset: before.length, message: this.broken };
  }

  /**
   * @param {Problem[]} problems
   * @returns {Located[]}
   */
  located(problems) {
    const found = places(this.text.value);
    return problems
      .filter((problem) => problem.pointer.startsWith("/spec"))
      .map((problem) => {
        const offset = nearest(found, problem.pointer.slice("/spec".length));
        return { line: this.text.value.slice(0, offset).split("\n").length, offset, message: problem.message };
      });
  }

  /** @param {Located} problem */
  item(problem) {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "ef-link",
      textContent: `line ${problem.line}`,
    });
    button.dataset.offset = String(problem.offset);
    item.append(button, ` ${problem.message}`);
    return item;
  }

  /** @param {MouseEvent} event */
  onJump(event) {
    const button = closest(event, "[data-offset]");
    if (!button) return;
    const from = Number(button.dataset.offset);
    const end = this.text.value.indexOf("\n", from);
    this.text.focus();
    this.text.setSelectionRange(from, end < 0 ? this.text.value.length : end);
    const height = parseFloat(getComputedStyle(this.text).lineHeight);
    this.text.scrollTop = (this.text.value.slice(0, from).split("\n").length - 4) * height;
  }
}

/**
 * Read a spec from JSON, or return why it cannot be read.
 * @param {string} text
 * @returns {{ spec: Spec | null, message: string }}
 */
export function parsed(text) {
  try {
    const spec = JSON.parse(text);
    if (spec !== null && typeof spec === "object" && !Array.isArray(spec)) return { spec, message: "" };
    return { spec: null, message: "The spec is one object: { … }" };
  } catch (error) {
    return { spec: null, message: error instanceof Error ? error.message : String(error) };
  }
}
