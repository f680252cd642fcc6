// The fields outside of rows: they show the spec and write into it; what they offer follows the data set.

import { grouped } from "../trials/words.js";
import { offer, read, show } from "./inputs.js";
import { get, put } from "./pointer.js";

const label = { version: (one) => `${one.number}${one.state === "ready" ? "" : ` (${one.state})`}` };

export class Fields {
  constructor(form, sheet) {
    this.form = form;
    this.sheet = sheet;
    this.put_aside = new Map();
    form.addEventListener("input", (event) => this.onInput(event));
    sheet.addEventListener("change", (event) => this.follow(event.detail.from));
    this.offerMetrics();
    this.follow("start");
  }

  get inputs() {
    return [...this.form.querySelectorAll(".ef-fields [data-pointer]")].filter(
      (input) => !input.closest("[data-row-of]"),
    );
  }

  onInput(event) {
    const toggle = event.target.closest("[data-toggle]");
    if (toggle) return this.onToggle(toggle);
    const input = event.target.closest("[data-pointer]");
    if (!input || input.closest("[data-row-of]")) return undefined;
    const pointer = input.dataset.pointer;
    if (pointer === "/data/dataset") return this.onDataset(read(input));
    if (pointer in this.sheet.known.variants) return this.onKind(pointer, read(input));
    if (pointer === "/search/objective/metric") this.matchDirection(read(input));
    return this.sheet.put(pointer, read(input));
  }

  /** A switch makes its object, or takes it away; switched on again, what was there comes back. */
  onToggle(toggle) {
    const pointer = toggle.dataset.toggle;
    if (toggle.checked) {
      this.sheet.put(pointer, this.put_aside.get(pointer) ?? this.initial(toggle), "rows");
    } else {
      this.put_aside.set(pointer, this.sheet.get(pointer));
      this.sheet.put(pointer, undefined, "rows");
    }
  }

  initial(toggle) {
    const made = JSON.parse(toggle.dataset.initial);
    if (toggle.dataset.toggle === "/search") made.objective = this.objective();
    if (toggle.dataset.toggle === "/after/register") made.model = this.sheet.get("/data/dataset") ?? "";
    return made;
  }

  objective() {
    const metric = this.sheet.measures?.objective ?? "val_loss";
    return { metric, direction: this.directionOf(metric) };
  }

  directionOf(metric) {
    return this.sheet.measures?.directions[String(metric).replace(/^val_/, "")] ?? "min";
  }

  matchDirection(metric) {
    this.sheet.get("/search/objective").direction = this.directionOf(metric);
    show(document.getElementById("at/spec/search/objective/direction"), this.directionOf(metric));
  }

  /** Another data set may have another task and shape: take what no longer fits along. */
  onDataset(slug) {
    this.sheet.edit((spec) => {
      spec.data.dataset = slug;
      delete spec.data.dataset_version;
      for (const name of ["target", "features", "task"]) delete spec.data[name];
      for (const name of ["group", "column", "time"]) delete spec.data.split?.[name];
      if (!this.sheet.measures) return;
      for (const name of ["loss", "metrics"]) delete spec.fit?.[name];
      const wanted = spec.search?.objectives ?? [spec.search?.objective];
      if (spec.search && !wanted.every((one) => this.sheet.watched.includes(one?.metric))) {
        delete spec.search.objectives;
        spec.search.objective = this.objective();
      }
      const stopping = spec.fit?.early_stopping;
      if (stopping?.monitor && !this.sheet.watched.includes(stopping.monitor)) stopping.monitor = "val_loss";
      const kind = this.sheet.version?.kind;
      const { template } = this.sheet;
      if (!kind || !template || template.dataKinds.includes(kind)) return;
      this.setKind(
        spec,
        "/model/template",
        this.sheet.known.templates.find((one) => one.dataKinds.includes(kind)).name,
      );
    });
  }

  onKind(pointer, name) {
    this.sheet.edit((spec) => this.setKind(spec, pointer, name));
  }

  /** Another template, optimizer, schedule … keeps of its arguments those that it takes too. */
  setKind(spec, pointer, name) {
    const { arguments: place, kinds } = this.sheet.known.variants[pointer];
    const takes = Object.keys(kinds[name] ?? {});
    const held = get(spec, place);
    if (held && !takes.length) put(spec, place, undefined);
    else if (held && typeof held === "object")
      put(spec, place, Object.fromEntries(Object.entries(held).filter(([argument]) => takes.includes(argument))));
    put(spec, pointer, name);
  }

  follow(from) {
    this.offerChoices();
    if (from !== "field") for (const input of this.inputs) show(input, this.sheet.get(input.dataset.pointer));
    for (const toggle of this.form.querySelectorAll("[data-toggle]")) toggle.checked = this.has(toggle.dataset.toggle);
    for (const part of this.form.querySelectorAll("[data-within]")) part.hidden = !this.has(part.dataset.within);
    this.showArguments();
    this.showSplit();
  }

  has(pointer) {
    return (this.sheet.get(pointer) ?? null) !== null;
  }

  /** Show the arguments of the chosen template, optimizer, schedule …, with its own defaults. */
  showArguments() {
    for (const field of this.form.querySelectorAll("[data-only]")) {
      const chosen = this.form.querySelector(`[data-pointer="${field.dataset.of}"]`);
      const kind = this.sheet.get(field.dataset.of) ?? JSON.parse(chosen.dataset.default || "null");
      field.hidden = !field.dataset.only.split(" ").includes(kind);
      const input = field.querySelector("[data-pointer]");
      const own = this.sheet.known.variants[field.dataset.of].kinds[kind]?.[input.dataset.pointer.split("/").at(-1)];
      if (input.placeholder !== undefined && own !== undefined) input.placeholder = own === null ? "" : String(own);
    }
  }

  offerMetrics() {
    const set = document.getElementById("at/spec/fit/metrics");
    const names = [...new Set(Object.values(this.sheet.known.tasks).flatMap((task) => task.metrics))];
    for (const name of names) {
      const label = document.createElement("label");
      label.className = "form-check form-check-inline";
      const box = Object.assign(document.createElement("input"), {
        type: "checkbox",
        className: "form-check-input",
        value: name,
      });
      const word = Object.assign(document.createElement("span"), { className: "form-check-label", textContent: name });
      label.append(box, word);
      set.append(label);
    }
  }

  offerChoices() {
    const { sheet } = this;
    const versions = sheet.dataset?.versions ?? [];
    const columns = sheet.version?.columns ?? [];
    const offers = {
      dataset: (input) =>
        offer(
          input,
          sheet.known.datasets.map((one) => one.slug),
        ),
      version: (input) =>
        offer(
          input,
          versions.map((one) => one.number),
          {
            open: "newest ready",
            label: (number) => label.version(versions.find((one) => one.number === number)),
          },
        ),
      column: (input) => offer(input, columns, { open: "—" }),
      search: (input) => this.offerSearches(input),
      measure: (input) => offer(input, sheet.watched),
      loss: (input) => offer(input, sheet.measures?.losses ?? [], { open: "from the task" }),
    };
    for (const input of this.inputs) {
      const fill = offers[input.dataset.input];
      if (!fill) continue;
      fill(input);
      show(input, sheet.get(input.dataset.pointer));
    }
    const fitting = sheet.measures?.metrics ?? [];
    for (const box of document.querySelectorAll('[data-input="metrics"] input')) {
      box.parentElement.hidden = !fitting.includes(box.value) && !box.checked;
    }
  }

  /** Offer the earlier searches whose scores mean the same as those of this one. */
  offerSearches(input) {
    const { sheet } = this;
    const asText = (objectives) => objectives.map((one) => `${one?.metric} ${one?.direction ?? "min"}`).join();
    const wanted = asText(
      sheet.get("/search/objectives") ?? [sheet.get("/search/objective") ?? { metric: "val_loss" }],
    );
    const fitting = sheet.known.searches.filter((one) => asText(one.objectives) === wanted);
    const label = (id) => sheet.known.searches.find((one) => one.id === id)?.label ?? `job ${id}`;
    offer(
      input,
      fitting.map((one) => one.id),
      { open: fitting.length ? "none" : "none with this objective yet", label },
    );
  }

  /** Draw how many rows go where. */
  showSplit() {
    const figure = this.form.querySelector("[data-split]");
    const rows = this.sheet.version?.rows;
    const split = { validation: 0.2, test: 0.2, ...this.sheet.get("/data/split") };
    const train = 1 - split.validation - split.test;
    figure.hidden = !rows || !(train > 0 && split.validation > 0 && split.test > 0);
    if (figure.hidden) return;
    const parts = [
      ["train", train],
      ["validation", split.validation],
      ["test", split.test],
    ];
    let x = 0;
    const legend = parts.map(([name, share]) => {
      const bar = figure.querySelector(`.ef-${name}`);
      bar.setAttribute("x", x);
      bar.setAttribute("width", share * 100);
      x += share * 100;
      const item = document.createElement("span");
      const mark = Object.assign(document.createElement("i"), { className: `ef-mark ef-${name}` });
      item.append(mark, `${name} ≈ ${grouped(Math.round(rows * share))} rows`);
      return item;
    });
    figure.querySelector("figcaption").replaceChildren(...legend);
  }
}
