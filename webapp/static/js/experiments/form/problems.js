// Shows each problem and warning at its field, counts them at the steps, and lists them in the bar with links to the fields.

/** @import { Problem } from "./types.js" */
/** @import { Steps } from "./steps.js" */
import { address } from "../../shared/addresses.js";
import { byId, closest, find, findAll } from "../../shared/elements.js";
import { parent } from "./pointer.js";

/**
 * Return a pointer as a place in the form, such as `search › space › 0`.
 * @param {string} pointer
 */
export const placeOf = (pointer) => pointer.replace(/^\/(spec\/)?/, "").replaceAll("/", " › ") || "spec";

/**
 * Return a problem as text, with a link to the job that it names.
 * @param {Problem} problem
 */
export function sentence({ message, job }) {
  const parts = document.createDocumentFragment();
  parts.append(message);
  if (job) {
    const link = Object.assign(document.createElement("a"), {
      href: address(`/jobs/${job}`),
      textContent: `Job ${job}`,
    });
    parts.append(". ", link);
  }
  return parts;
}

export class Problems {
  /**
   * @param {HTMLFormElement} form
   * @param {Steps} steps
   */
  constructor(form, steps) {
    this.form = form;
    this.steps = steps;
    this.list = find(form, "[data-problem-list]", HTMLDetailsElement);
    this.warnings = find(form, "[data-warning-list]", HTMLDetailsElement);
    form.addEventListener("click", (event) => {
      const pointer = closest(event, "[data-goto]")?.dataset.goto;
      if (pointer === undefined) return;
      event.preventDefault();
      this.jump(pointer);
    });
  }

  /**
   * @param {Problem[]} problems
   * @param {Problem[]} warnings whose pointers begin in the spec
   */
  show(problems, warnings = []) {
    for (const old of this.form.querySelectorAll("[data-problem-message]")) old.remove();
    for (const input of this.form.querySelectorAll(".ef-fields [aria-describedby^=problem-]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    const placed = warnings.map((warning) => ({ ...warning, pointer: `/spec${warning.pointer}` }));
    problems.forEach((problem, i) => this.place(problem, `problem-${i}`));
    placed.forEach((warning, i) => this.place(warning, `problem-warning-${i}`, { isWarning: true }));
    this.count(problems, placed);
    this.fill(this.list, problems, `${problems.length} problem${problems.length === 1 ? "" : "s"} to fix`);
    this.fill(this.warnings, placed, `${placed.length} warning${placed.length === 1 ? "" : "s"}`);
  }

  /**
   * @param {HTMLDetailsElement} list
   * @param {Problem[]} problems
   * @param {string} words
   */
  fill(list, problems, words) {
    list.hidden = !problems.length;
    find(list, "summary", HTMLElement).textContent = words;
    find(list, "ul", HTMLElement).replaceChildren(...problems.map((problem) => this.item(problem)));
  }

  /**
   * Return the element of a pointer, or the nearest one around it.
   * @param {string} pointer
   */
  element(pointer) {
    // The field of the template chooses a hypermodel, too; that of the version its number or alias.
    const place = pointer
      .replace(/^\/spec\/model\/name$/, "/spec/model/template")
      .replace(/^\/spec\/model\/(number|alias)$/, "/spec/model/model")
      .replace(/^(\/spec\/search\/space\/\d+)(\/(min|max|step|sampling))?$/, "$1/range");
    for (let here = place; here; here = parent(here)) {
      const found = document.getElementById(`at${here}`);
      if (found && !found.classList.contains("ef-text")) return found;
    }
    return null;
  }

  /**
   * @param {Problem} problem
   * @param {string} id
   * @param {{ isWarning?: boolean }} [options]
   */
  place(problem, id, { isWarning = false } = {}) {
    const element = this.element(problem.pointer);
    if (!element) return;
    const message = Object.assign(document.createElement("div"), {
      className: isWarning ? "ef-warning" : "ty-error",
      id,
    });
    if (isWarning) {
      const icon = find(document, 'template[data-icon="warning"]', HTMLTemplateElement);
      message.append(icon.content.cloneNode(true), " ");
    }
    message.append(sentence(problem));
    message.dataset.problemMessage = "";
    if (element.matches("input, select, textarea")) {
      if (!isWarning) element.setAttribute("aria-invalid", "true");
      const described = element.getAttribute("aria-describedby");
      element.setAttribute("aria-describedby", described ? `${described} ${id}` : id);
    }
    const row = element.closest("[data-row-of=space]");
    (row ?? element.closest("[data-field]") ?? element.closest("legend")?.parentElement ?? element).append(message);
  }

  /**
   * @param {Problem[]} problems
   * @param {Problem[]} warnings
   */
  count(problems, warnings) {
    for (const link of findAll(this.form, "[data-step]", HTMLElement)) {
      const owned = (link.dataset.owns ?? "").split(" ").filter(Boolean);
      const below = (/** @type {Problem[]} */ all) =>
        all.filter((problem) => owned.some((own) => this.isBelow(problem.pointer, own))).length;
      this.badge(find(link, "[data-count=problems]", HTMLElement), below(problems), "to fix");
      const found = below(warnings);
      this.badge(find(link, "[data-count=warnings]", HTMLElement), found, found === 1 ? "warning" : "warnings");
    }
  }

  /**
   * @param {HTMLElement} badge
   * @param {number} found
   * @param {string} words
   */
  badge(badge, found, words) {
    badge.hidden = !found;
    badge.textContent = found ? String(found) : "";
    badge.setAttribute("aria-label", found ? `${found} ${words}` : "");
  }

  /**
   * @param {string} pointer
   * @param {string} own
   */
  isBelow(pointer, own) {
    const here = pointer.startsWith("/spec") ? pointer.slice("/spec".length) : pointer;
    return here === own || here.startsWith(`${own}/`);
  }

  /** @param {Problem} problem */
  item(problem) {
    const item = document.createElement("li");
    const link = Object.assign(document.createElement("a"), {
      href: "#",
      textContent: placeOf(problem.pointer),
    });
    link.dataset.goto = problem.pointer;
    item.append(link, " ", sentence(problem));
    return item;
  }

  /**
   * Open the step of a pointer and put the focus on its field.
   * @param {string} pointer
   */
  jump(pointer) {
    const element = this.element(pointer) ?? byId("at/spec", HTMLElement);
    const section = element.closest("[data-section]");
    if (section) this.steps.open(section.id, { focus: false });
    this.list.open = false;
    this.warnings.open = false;
    const target = element.matches("[data-input=axes]") ? find(element, "select, button", HTMLElement) : element;
    for (const around of [element.closest("details"), element.closest("[data-more]")]) {
      if (around instanceof HTMLDetailsElement) around.open = true;
      else around?.dispatchEvent(new Event("ty:reveal", { bubbles: true }));
    }
    target.focus();
    target.scrollIntoView({ block: "center" });
  }
}
