// Types that the modules of the experiment form share: the spec, and the server's description of its fields.

export type Direction = "min" | "max";

/** Where a change of the spec comes from: it decides which parts are drawn again. */
export type Origin = "start" | "field" | "rows" | "text" | "check";

export interface Objective {
  metric?: string;
  direction?: string;
}

export interface Condition {
  name?: string;
  in?: unknown[];
}

/** A range that the server has read: the pointer of its row, the text, and the fields that it means. */
export interface RangeRead {
  pointer: string;
  text: string;
  fields: Record<string, unknown>;
}

/** A row of the search space; `range` is a text that the server has not read yet. */
export interface Parameter {
  name?: string;
  kind?: string;
  range?: unknown;
  step?: unknown;
  sampling?: unknown;
  min?: unknown;
  max?: unknown;
  values?: unknown[];
  default?: unknown;
  value?: unknown;
  when?: Condition | Condition[];
}

export interface Rule {
  match?: string;
  axes?: (string | null)[];
  policy?: string;
}

export interface Search {
  algorithm?: string;
  space?: Parameter[];
  objective?: Objective;
  objectives?: Objective[];
}

/** The experiment spec, as far as the form reads it. JSON typed by a user may lack any part. */
export interface Spec {
  data?: {
    dataset?: string;
    dataset_version?: number;
    task?: string;
    target?: unknown;
    features?: unknown;
    preprocessing?: unknown;
    texts?: unknown;
    window?: unknown;
    split?: {
      validation?: number;
      test?: number;
      group?: unknown;
      column?: unknown;
      time?: unknown;
      use_roles?: unknown;
    };
  };
  model?: {
    kind?: string;
    template?: string;
    name?: string;
    model?: string;
    number?: unknown;
    alias?: unknown;
    digest?: string;
    entry?: string;
    args?: unknown;
    normalize?: boolean;
  };
  fit?: { metrics?: string[]; loss?: unknown; early_stopping?: { monitor?: string } };
  search?: Search;
  after?: { retrain?: { monitor?: string }; quantize?: { mode?: string } };
  mesh?: {
    axis_names?: string[];
    shape?: (number | string)[];
    batch_axis?: string | null;
    simulate?: number;
    layout?: Rule[];
  };
  precision?: { policy?: string; overrides?: Rule[] };
  resources?: { pool?: string };
}

export interface Version {
  number: number;
  state: string;
  task: string;
  kinds?: string[];
  inputShape?: number[];
  rows: number | null;
  columns: string[];
  /** The column that has the role, by role; absent while the version is not ready. */
  splitRoles?: Record<"group" | "time" | "split", string | null>;
}

export interface Task {
  metrics: string[];
  losses: string[];
  defaults: string[];
  objective: string;
  directions: Record<string, Direction>;
}

/** A place in the spec that chooses between kinds, each with arguments, their defaults and those that are choices. */
export interface Variant {
  arguments: string;
  kinds: Record<string, Record<string, unknown>>;
  options: Record<string, Record<string, unknown[]>>;
}

/**
 * A model template or a hypermodel of KerasTuner; `searched` has the ranges of a new search, `unused` has the pointers that have no effect on its models, `refused` those of steps that its models
 * cannot take, both with the reason.
 */
export interface Template {
  name: string;
  label: string;
  isHypermodel: boolean;
  /** Whether a search can compare it with others: not so for a registered version. */
  isListed: boolean;
  dataKinds: string[];
  smallestSide: number;
  refusedTasks: string[];
  searched: Record<string, Parameter>;
  ranges: Record<string, Parameter>;
  unused: Record<string, string>;
  refused: Record<string, string>;
}

/** An entry of a version of code that builds models, with the arguments of its constructor; null: required. */
export interface CodeEntry {
  entry: string;
  arguments: { name: string; default: string | null }[];
}

/** The result of a dry build, as the form uses it. */
export interface Built {
  ranges: Record<string, Parameter>;
  unused: Record<string, string>;
  metrics: string[];
}

/** The server's answer about a dry run, which compares a precision with float32. */
export interface DryRun {
  state: string;
  job: number | null;
  finding: string;
  error: { message: string } | null;
  why_waiting: string;
}

/** The server's answer about a dry build. */
export interface DryBuild {
  state: string;
  job: number | null;
  built: {
    space: (Parameter & { name: string })[];
    parameters: number;
    builds: number;
    most_builds: number;
    metrics: string[];
    notes: string[];
    one_call: boolean;
  } | null;
  unused: Record<string, string>;
  error: { message: string } | null;
  why_waiting: string;
}

/** The context that the server passes to the form in the element #form-context. */
export interface Known {
  project: string;
  experiment: number | null;
  /** The names of other experiments, from which a proposed name differs. */
  names: string[];
  datasets: { slug: string; versions: Version[] }[];
  tasks: Record<string, Task>;
  variants: Record<string, Variant>;
  fitFields: string[];
  fitRanges: Record<string, Parameter>;
  templates: Template[];
  /** Whether a person has chosen the data set with which the form begins. */
  isDataChosen: boolean;
  /** The data set of the last experiment with the code with which the form begins; empty for none. */
  lastUsed: string;
  /** Registered versions that can be trained further, by names such as `digits/3`. */
  baseVersions: { name: string; label: string }[];
  code: {
    mayRun: boolean;
    /** `data`: null without a function load_data; its `dataset` is null before it has loaded one. */
    versions: { digest: string; label: string; entries: CodeEntry[]; data: { dataset: string | null } | null }[];
    unused: Record<string, string>;
  };
  searches: { id: number; label: string; objectives: Objective[] }[];
}

export interface Problem {
  pointer: string;
  message: string;
  /** A job whose page shows more about it. */
  job?: number | null;
}

export interface Variable {
  path: string;
  axes: (string | null)[];
  rule: number | null;
  shape: number[];
  device_shape: number[];
  bytes: number;
}

/** A layer of a model that is trained further. */
export interface PlannedLayer {
  path: string;
  kind: string;
  output_shape: (number | null)[] | null;
  parameters: number;
  frozen: boolean;
  head: boolean;
}

export interface FineTuning {
  version: string;
  layers: PlannedLayer[];
  parameters: number | null;
  trainable: number | null;
}

/** The plan of a job of this spec, as computed by validation. */
export interface Plan {
  kind: string;
  trials: number;
  executions: number;
  retrainings: number;
  epoch_chosen_by: string;
  stopped_by: string | null;
  minutes_per_training: number | null;
  epochs: number;
  epochs_of_search: number;
  epochs_of_retraining: number;
  epochs_likely: number | null;
  slots: number;
  free_slots: number;
  slots_per_trial: number;
  minutes_per_training: number | null;
  parallel_trials: number;
  devices: number;
  device_kind: string;
  batch_shards: number;
  parameters: number | null;
  memory: Record<string, number> | null;
  memory_per_device: number | null;
  device_hours: number | null;
  device_hours_likely: number;
  /** the limit of a search that time alone ends */
  max_minutes: number | null;
  largest: Record<string, unknown>;
  steps: string[];
  space: string;
  summary: { name: string; takes: string; when: string }[];
  estimate: string;
  warnings: Problem[];
  variables: Variable[];
  /** of which model they are, or why none are known */
  variables_note: string;
  suggested_layout: Rule[];
  fine_tuning: FineTuning | null;
}

/** The state of the check, and its result if that is "ok" or "bad". */
export interface Verdict {
  state: "busy" | "ok" | "bad" | "away" | "logged-out";
  errors?: Problem[];
  plan?: Plan | null;
  ranges?: RangeRead[];
}
