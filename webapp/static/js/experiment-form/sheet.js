// The one spec object that fields, rows and JSON pane share. Who changes it says so; the others follow.
import { get, put } from "./pointer.js";

export class Sheet extends EventTarget {
  constructor(spec, known) {
    super();
    this.spec = spec;
    this.known = known;
  }

  get(pointer) {
    return get(this.spec, pointer);
  }

  /** Change one value. `from` is "field" (shown there already) or "rows" (everything is to be drawn anew). */
  put(pointer, value, from = "field") {
    put(this.spec, pointer, value);
    this.changed(from);
  }

  edit(change, from = "rows") {
    change(this.spec);
    this.changed(from);
  }

  replace(spec) {
    this.spec = spec;
    this.changed("text");
  }

  changed(from) {
    this.dispatchEvent(new CustomEvent("change", { detail: { from } }));
  }

  get dataset() {
    return this.known.datasets.find((dataset) => dataset.slug === this.get("/data/dataset"));
  }

  /** The dataset version that the spec means: the one named, else the newest ready one. */
  get version() {
    const number = this.get("/data/dataset_version");
    const all = this.dataset?.versions ?? [];
    return number === undefined
      ? all.findLast((one) => one.state === "ready")
      : all.find((one) => one.number === number);
  }

  /** Losses and metrics of the task at hand, undefined while it is not known. */
  get measures() {
    return this.known.tasks[this.get("/data/task") ?? this.version?.task];
  }

  /** What is measured on validation data after each epoch. */
  get watched() {
    const metrics = this.get("/fit/metrics") ?? this.measures?.defaults ?? [];
    return ["val_loss", ...(Array.isArray(metrics) ? metrics : []).map((name) => `val_${name}`)];
  }

  /** Names that a hyperparameter may have. */
  get names() {
    return [
      ...Object.keys(this.known.variants["/model/template"].kinds[this.get("/model/template")] ?? {}),
      ...this.known.fitFields,
    ];
  }

  /** The chosen template, undefined while it is none that is known. */
  get template() {
    return this.known.templates.find((one) => one.name === this.get("/model/template"));
  }

  /** A sensible range for a hyperparameter. */
  rangeOf(name) {
    return this.template?.ranges[name] ?? this.known.fitRanges[name];
  }

  /** What decides whether a hyperparameter means anything, and under which values: {name, values}, or undefined. */
  takers(name) {
    for (const [pointer, { arguments: place, kinds }] of Object.entries(this.known.variants)) {
      const own = name.slice(name.indexOf("/") + 1);
      if (`/fit/${name}` !== `${place}/${own}` || `/fit/${name}` === pointer) continue;
      return { name: pointer.replace("/fit/", ""), values: Object.keys(kinds).filter((kind) => own in kinds[kind]) };
    }
    return undefined;
  }

  get space() {
    const rows = this.get("/search/space");
    return Array.isArray(rows) ? rows : [];
  }
}
