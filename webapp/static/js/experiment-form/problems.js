// Puts each problem at its field, counts them at the steps, and lists them with links that jump there.
import { parent } from "./pointer.js";

export class Problems {
  constructor(form, steps) {
    this.form = form;
    this.steps = steps;
    this.list = form.querySelector("[data-problem-list]");
    form.addEventListener("click", (event) => {
      const link = event.target.closest("[data-goto]");
      if (!link) return;
      event.preventDefault();
      this.jump(link.dataset.goto);
    });
  }

  show(problems) {
    for (const old of this.form.querySelectorAll("[data-told]")) old.remove();
    for (const input of this.form.querySelectorAll(".ef-fields [aria-invalid]")) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    problems.forEach((problem, i) => this.place(problem, i));
    this.count(problems);
    this.list.hidden = !problems.length;
    this.list.querySelector("summary").textContent =
      `${problems.length} thing${problems.length === 1 ? "" : "s"} to mend`;
    this.list.querySelector("ul").replaceChildren(...problems.map((problem) => this.item(problem)));
  }

  /** Return the element that a pointer means, or the nearest one around it. */
  element(pointer) {
    for (let here = pointer; here; here = parent(here)) {
      const found = document.getElementById(`at${here}`);
      if (found && !found.classList.contains("ef-text")) return found;
    }
    return null;
  }

  place(problem, index) {
    const element = this.element(problem.pointer);
    if (!element) return;
    const told = Object.assign(document.createElement("div"), {
      className: "ty-error",
      id: `problem-${index}`,
      textContent: problem.message,
    });
    told.dataset.told = "";
    if (element.matches("input, select, textarea")) {
      element.setAttribute("aria-invalid", "true");
      element.setAttribute("aria-describedby", told.id);
    }
    (element.closest("[data-field]") ?? element.closest("legend")?.parentElement ?? element).append(told);
  }

  count(problems) {
    for (const link of this.form.querySelectorAll("[data-step]")) {
      const owned = link.dataset.owns.split(" ").filter(Boolean);
      const mine = problems.filter((problem) => owned.some((own) => this.isBelow(problem.pointer, own)));
      const badge = link.querySelector(".ef-count");
      badge.hidden = !mine.length;
      badge.textContent = mine.length || "";
      badge.setAttribute("aria-label", mine.length ? `${mine.length} to mend` : "");
    }
  }

  isBelow(pointer, own) {
    const here = pointer.startsWith("/spec") ? pointer.slice("/spec".length) : pointer;
    return here === own || here.startsWith(`${own}/`);
  }

  item(problem) {
    const item = document.createElement("li");
    const link = Object.assign(document.createElement("a"), {
      href: "#",
      textContent: problem.pointer.replace("/spec/", "").replaceAll("/", " › "),
    });
    link.dataset.goto = problem.pointer;
    item.append(link, ` ${problem.message}`);
    return item;
  }

  jump(pointer) {
    const element = this.element(pointer) ?? document.getElementById("at/spec");
    const section = element.closest("[data-section]");
    if (section) this.steps.open(section.id, { focus: false });
    this.list.open = false;
    const target = element.matches("[data-input=axes]") ? element.querySelector("select, button") : element;
    target.focus();
    target.scrollIntoView({ block: "center" });
  }
}
