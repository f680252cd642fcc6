// The one spec object that fields, rows and JSON pane share. Each change is an event, which the others follow.

/** @import { Built, Direction, Known, Origin, Parameter, Spec, Task, Template } from "./types.js" */
import { get, put } from "./pointer.js";
import { versionNamed } from "./version.js";

/** The pointer of the field that chooses the template. */
export const TEMPLATE = "/model/template";
/** The entry of that field for own code. */
export const CODE = "code";
/** The start of the names of hyperparameters that are fields of the fit, beside those of own code. */
export const FIT = "fit/";
const DIRECTION = /^(\/search\/objectives?\/(\d+\/)?)direction$/;

export class Sheet extends EventTarget {
  /**
   * @param {Spec} spec
   * @param {Known} known
   */
  constructor(spec, known) {
    super();
    this.spec = spec;
    this.known = known;
    /** The result of the dry build of own code, null while it is not known. @type {Built | null} */
    this.built = null;
  }

  /** @param {string} pointer */
  get(pointer) {
    return pointer === TEMPLATE ? this.templateName : get(this.spec, pointer);
  }

  /** The name of the template, or of the hypermodel, which a spec has in another field. */
  get templateName() {
    const { kind, template, name } = this.spec.model ?? {};
    if (kind === "version") return kind;
    if (kind === CODE) return CODE;
    return kind === "hypermodel" ? name : template;
  }

  /**
   * @param {Spec} spec
   * @param {string} name
   */
  setTemplate(spec, name) {
    const { args } = spec.model ?? {};
    if (name === "version") {
      const [newest] = this.known.baseVersions;
      const model = { kind: "version", ...versionNamed(newest?.name ?? "") };
      spec.model = args === undefined ? model : { ...model, args };
      return;
    }
    if (name === CODE) {
      const [version] = this.known.code.versions.filter((one) => one.entries.length);
      spec.model = { kind: CODE, digest: version?.digest, entry: version?.entries[0].entry };
      return;
    }
    const isHypermodel = this.known.templates.some((one) => one.name === name && one.isHypermodel);
    const named = isHypermodel ? { kind: "hypermodel", name } : { kind: "template", template: name };
    spec.model = args === undefined ? named : { ...named, args };
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

  /**
   * Return the better direction of a measure; undefined for one that only own code knows.
   * @param {string} metric
   * @returns {Direction | undefined}
   */
  directionOf(metric) {
    const name = metric.replace(/^val_/, "");
    const task = Object.values(this.known.tasks).find((one) => Object.hasOwn(one.directions, name));
    return task?.directions[name] ?? (this.templateName === CODE ? undefined : "min");
  }

  /**
   * Return the value of a field as it is shown: null if it has no default that can be relied on.
   * @param {string} pointer
   */
  shown(pointer) {
    const value = this.get(pointer);
    if (value !== undefined || this.templateName !== CODE || !DIRECTION.test(pointer)) return value;
    const metric = String(this.get(pointer.replace(DIRECTION, "$1metric")) ?? "val_loss");
    return this.directionOf(metric) === "min" ? value : null;
  }

  /** The metrics that are measured on validation data after each epoch. */
  get watched() {
    if (this.templateName === CODE) return this.built?.metrics.length ? this.built.metrics : this.objectives;
    const metrics = this.spec.fit?.metrics ?? this.measures?.defaults ?? [];
    return ["val_loss", ...(Array.isArray(metrics) ? metrics : []).map((name) => `val_${name}`)];
  }

  /** The metrics of the objectives of the spec. */
  get objectives() {
    const { objective, objectives = [objective] } = this.spec.search ?? {};
    return objectives.map((one) => one?.metric ?? "val_loss");
  }

  /** Names that a hyperparameter may have. */
  get names() {
    const fields = this.known.fitFields.filter((name) => !this.isUnused(`/fit/${name}`));
    if (this.templateName === CODE)
      return [...Object.keys(this.built?.ranges ?? {}), ...fields.map((name) => `${FIT}${name}`)];
    return [
      ...Object.keys(this.known.variants[TEMPLATE].kinds[this.templateName ?? ""] ?? {}),
      ...fields,
      ...(this.template?.isListed === false ? [] : ["template"]),
      ...this.fittingTemplates.flatMap((one) => Object.keys(one.ranges).map((name) => `${one.name}/${name}`)),
    ];
  }

  /** The templates that take the data; all while the data are not known. None can be compared with a version. */
  get fittingTemplates() {
    if (this.template?.isListed === false) return [];
    return this.known.templates.filter((one) => one.isListed && this.takes(one));
  }

  /** The templates that the search tries, or the chosen one. */
  get triedTemplates() {
    if (this.templateName === CODE) return [this.code];
    const row = this.space.find((one) => one.name === "template");
    const names = Array.isArray(row?.values) ? row.values : [this.templateName];
    return this.known.templates.filter((one) => names.includes(one.name));
  }

  /**
   * Return whether a field or section has no effect on models of the templates that are tried.
   * @param {string} pointer
   */
  isUnused(pointer) {
    const covers = (/** @type {string} */ one) => pointer === one || pointer.startsWith(`${one}/`);
    const tried = this.triedTemplates;
    return (
      (tried.length > 0 && tried.every((template) => Object.keys(template.unused).some(covers))) ||
      tried.some((template) => Object.keys(template.refused).some(covers))
    );
  }

  /** The chosen template, undefined if it is not known. */
  get template() {
    if (this.templateName === CODE) return this.code;
    return this.known.templates.find((one) => one.name === this.templateName);
  }

  /**
   * Own code, described as a template is.
   * @returns {Template}
   */
  get code() {
    return {
      name: CODE,
      label: "own code",
      isHypermodel: false,
      isListed: false,
      dataKinds: ["vector", "image", "sequence", "text"],
      smallestSide: 1,
      refusedTasks: [],
      ranges: this.built?.ranges ?? {},
      searched: {},
      unused: { ...this.known.code.unused, ...this.built?.unused },
      refused: {},
    };
  }

  /**
   * Return whether a template takes the data; true while they are not known.
   * @param {{ dataKinds: string[], smallestSide: number, refusedTasks: string[] }} template
   */
  takes(template) {
    const { inputShape = [], task } = this.version ?? {};
    // Windows make sequences of the rows of a table.
    const kinds = this.spec.data?.window ? ["sequence"] : this.version?.kinds;
    if (!kinds) return true;
    const isLarge = !kinds.includes("image") || Math.min(...inputShape.slice(0, 2)) >= template.smallestSide;
    const isTask = !template.refusedTasks.includes(this.spec.data?.task ?? task ?? "");
    return isLarge && isTask && template.dataKinds.some((kind) => kinds.includes(kind));
  }

  /**
   * Return a sensible range for a hyperparameter.
   * @param {string} name
   * @returns {Parameter | undefined}
   */
  rangeOf(name) {
    if (this.templateName === CODE) return this.built?.ranges[name] ?? this.known.fitRanges[name.replace(FIT, "")];
    if (name === "template") {
      // Hypermodels take much longer than the others, so a person adds them.
      const values = this.fittingTemplates.filter((one) => !one.isHypermodel).map((one) => one.name);
      return { kind: "choice", values };
    }
    const [owner, argument] = name.split("/");
    const other = argument && this.known.templates.find((one) => one.name === owner);
    return other ? other.ranges[argument] : (this.template?.ranges[name] ?? this.known.fitRanges[name]);
  }

  /**
   * Return the argument that decides whether a hyperparameter is used, and its values for which it is used.
   * @param {string} name
   */
  conditionFor(name) {
    if (this.templateName === CODE) return undefined;
    const owner = name.includes("/") ? name.slice(0, name.indexOf("/")) : "";
    if (this.known.templates.some((one) => one.name === owner)) return { name: "template", values: [owner] };
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
