// The one spec object that fields, rows and JSON pane share. Each change is an event, which the others follow.

/** @import { Known, Origin, Parameter, Spec, Task } from "./types.js" */
import { get, put } from "./pointer.js";

export class Sheet extends EventTarget {
  /**
   * @param {Spec} spec
   * @param {Known} known
   */
  constructor(spec, known) {
    super();
    this.spec = spec;
    this.known = known;
  }

  /** @param {string} pointer */
  get(pointer) {
    return get(this.spec, pointer);
  }

  /**
   * Change one value. `from` is "field" (it is shown there already) or "rows" (everything is drawn again).
   * @param {string} pointer
   * @param {unknown} value
   * @param {Origin} from
   */
  put(pointer, value, from = "field") {
    put(this.spec, pointer, value);
    this.changed(from);
  }

  /**
   * @param {(spec: Spec) => void} change
   * @param {Origin} from
   */
  edit(change, from = "rows") {
    change(this.spec);
    this.changed(from);
  }

  /** @param {Spec} spec */
  replace(spec) {
    this.spec = spec;
    this.changed("text");
  }

  /** @param {Origin} from */
  changed(from) {
    this.dispatchEvent(new CustomEvent("change", { detail: { from } }));
  }

  /**
   * Call the listener after every change of the spec.
   * @param {(from: Origin) => void} listener
   */
  onChange(listener) {
    this.addEventListener("change", (event) =>
      listener(/** @type {CustomEvent<{ from: Origin }>} */ (event).detail.from),
    );
  }

  get dataset() {
    return this.known.datasets.find((dataset) => dataset.slug === this.spec.data?.dataset);
  }

  /** The version of the data set that the spec names, or else the newest ready one. */
  get version() {
    const number = this.spec.data?.dataset_version;
    const all = this.dataset?.versions ?? [];
    return number === undefined
      ? all.findLast((one) => one.state === "ready")
      : all.find((one) => one.number === number);
  }

  /** Losses and metrics of the task, undefined while it is not known. */
  get measures() {
    /** @type {Record<string, Task | undefined>} */
    const tasks = this.known.tasks;
    return tasks[this.spec.data?.task ?? this.version?.task ?? ""];
  }

  /** The metrics that are measured on validation data after each epoch. */
  get watched() {
    const metrics = this.spec.fit?.metrics ?? this.measures?.defaults ?? [];
    return ["val_loss", ...(Array.isArray(metrics) ? metrics : []).map((name) => `val_${name}`)];
  }

  /** Names that a hyperparameter may have. */
  get names() {
    return [
      ...Object.keys(this.known.variants["/model/template"].kinds[this.spec.model?.template ?? ""] ?? {}),
      ...this.known.fitFields,
    ];
  }

  /** The chosen template, undefined if it is not known. */
  get template() {
    return this.known.templates.find((one) => one.name === this.spec.model?.template);
  }

  /**
   * Return a sensible range for a hyperparameter.
   * @param {string} name
   * @returns {Parameter | undefined}
   */
  rangeOf(name) {
    return this.template?.ranges[name] ?? this.known.fitRanges[name];
  }

  /**
   * Return the argument that decides whether a hyperparameter is used, and its values for which it is used.
   * @param {string} name
   */
  conditionFor(name) {
    for (const [pointer, { arguments: place, kinds }] of Object.entries(this.known.variants)) {
      const own = name.slice(name.indexOf("/") + 1);
      if (`/fit/${name}` !== `${place}/${own}` || `/fit/${name}` === pointer) continue;
      return { name: pointer.replace("/fit/", ""), values: Object.keys(kinds).filter((kind) => own in kinds[kind]) };
    }
    return undefined;
  }

  get space() {
    const rows = this.spec.search?.space;
    return Array.isArray(rows) ? rows : [];
  }
}
