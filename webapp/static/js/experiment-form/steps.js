// The steps: one section at a time, named in the address, walked by links, buttons or Alt + arrow.
export class Steps {
  constructor(form) {
    this.links = [...form.querySelectorAll("[data-step]")];
    this.sections = [...form.querySelectorAll("[data-section]")];
    form.addEventListener("click", (event) => this.onClick(event));
    form.addEventListener("keydown", (event) => this.onKey(event));
    addEventListener("hashchange", () => this.open(location.hash.slice(1), { keep: false }));
    this.open(location.hash.slice(1) || this.sections[0].id, { focus: false, keep: false });
  }

  get current() {
    return Math.max(
      this.sections.findIndex((section) => !section.hidden),
      0,
    );
  }

  open(id, { focus = true, keep = true } = {}) {
    const section = this.sections.find((one) => one.id === id);
    if (!section) return;
    for (const one of this.sections) one.hidden = one !== section;
    for (const link of this.links) {
      if (link.dataset.step === id) link.setAttribute("aria-current", "step");
      else link.removeAttribute("aria-current");
    }
    this.links.find((link) => link.dataset.step === id)?.scrollIntoView({ block: "nearest", inline: "nearest" });
    if (keep) history.replaceState(null, "", `#${id}`);
    if (focus) section.querySelector("h2").focus({ preventScroll: true });
    if (focus) scrollTo({ top: 0 });
  }

  onClick(event) {
    const link = event.target.closest("[data-step]");
    if (link) {
      event.preventDefault();
      this.open(link.dataset.step);
    }
    const walk = event.target.closest("[data-walk]");
    if (walk) this.walk(Number(walk.dataset.walk));
  }

  onKey(event) {
    if (!event.altKey || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    this.walk(event.key === "ArrowDown" ? 1 : -1);
  }

  walk(by) {
    const next = this.sections[this.current + by];
    if (next) this.open(next.id);
  }
}
