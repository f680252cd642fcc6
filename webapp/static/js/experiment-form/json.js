// The JSON pane: line numbers, the text in step with the spec, and errors at their lines.
import { nearest, places, write } from "./pointer.js";

export class JsonPane {
  constructor(form, sheet) {
    this.sheet = sheet;
    this.text = form.querySelector(".ef-text");
    this.gutter = form.querySelector(".ef-gutter");
    this.list = form.querySelector(".ef-json-problems");
    this.broken = "";
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
    form.querySelector("[data-tidy]").addEventListener("click", () => {
      if (!this.broken) this.rewrite();
    });
    sheet.addEventListener("change", (event) => {
      if (event.detail.from !== "text") this.rewrite();
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
    try {
      const spec = JSON.parse(this.text.value);
      if (spec === null || typeof spec !== "object" || Array.isArray(spec))
        throw new SyntaxError("The spec is one object: { … }");
      this.broken = "";
      this.sheet.replace(spec);
    } catch (error) {
      this.broken = error.message;
      this.showProblems([]);
      this.sheet.dispatchEvent(new CustomEvent("broken", { detail: { message: error.message } }));
    }
    this.number();
  }

  /** Number the lines; those with a problem are marked. */
  number() {
    const marked = new Set(this.problems.map((problem) => problem.line));
    const count = this.text.value.split("\n").length;
    const lines = Array.from({ length: count }, (_, i) => {
      const line = document.createElement(marked.has(i + 1) ? "b" : "span");
      line.textContent = i + 1;
      return [line, "\n"]; // outside: the mark would swallow the break
    });
    this.gutter.replaceChildren(...lines.flat());
    this.gutter.scrollTop = this.text.scrollTop;
  }

  showProblems(problems) {
    this.problems = this.broken ? [this.syntaxProblem()] : this.located(problems);
    this.list.replaceChildren(...this.problems.map((problem) => this.item(problem)));
    this.text.setAttribute("aria-invalid", this.problems.length ? "true" : "false");
    this.number();
  }

  syntaxProblem() {
    const before = this.text.value.slice(0, Number(/position (\d+)/.exec(this.broken)?.[1] ?? this.text.value.length));
    return { line: before.split("\n").length, offset: before.length, message: this.broken };
  }

  located(problems) {
    const found = places(this.text.value);
    return problems
      .filter((problem) => problem.pointer.startsWith("/spec"))
      .map((problem) => {
        const offset = nearest(found, problem.pointer.slice("/spec".length));
        return { line: this.text.value.slice(0, offset).split("\n").length, offset, message: problem.message };
      });
  }

  item(problem) {
    const item = document.createElement("li");
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "ef-link",
      textContent: `line ${problem.line}`,
    });
    button.dataset.offset = problem.offset;
    item.append(button, ` ${problem.message}`);
    return item;
  }

  onJump(event) {
    const button = event.target.closest("[data-offset]");
    if (!button) return;
    const from = Number(button.dataset.offset);
    const end = this.text.value.indexOf("\n", from);
    this.text.focus();
    this.text.setSelectionRange(from, end < 0 ? this.text.value.length : end);
    const height = parseFloat(getComputedStyle(this.text).lineHeight);
    this.text.scrollTop = (this.text.value.slice(0, from).split("\n").length - 4) * height;
  }
}
