// Types that the table and the charts of a search share.
import type { AxisName, Offer, Scale } from "../shared/charts/axes.js";
import type { Direction, Drawing, Missing, Option, Range } from "../shared/charts/types.js";
import type { look } from "./look.js";
import type { Store } from "./store.js";
import type { View } from "./view.js";

/** A value for each trial; null where a trial has none. */
export type Values = (number | null)[];

export interface Objective {
  metric: string;
  direction: Direction;
}

export interface Parameter {
  name: string;
  kind: string;
  sampling?: string;
  values?: unknown[];
}

/** The epoch that a running execution has reached, and of how many. */
export interface Reached {
  epochs: number;
  of: number | null;
}

/** The response of `/jobs/{id}/trials/columns`. */
export interface ColumnsAnswer {
  whole: boolean;
  cursor: string;
  /** What `epochs` counts: epochs, or the steps of a script. */
  unit: "epoch" | "step";
  objective: Objective;
  objectives: Objective[];
  space: Parameter[];
  states: string[];
  number: number[];
  state: number[];
  score: Values;
  std: Values;
  by_hand: boolean[];
  restarts: number[];
  started: Values;
  finished: Values;
  seconds: Values;
  executions: number[];
  epochs: number[];
  values: Record<string, Values>;
  metrics: Record<string, Values>;
  waiting: Record<number, string>;
  front: number[];
  answers: Record<number, number>;
  beats_constant: boolean | null;
  under_way: Record<number, Record<number, Reached>>;
}

/** A column to sort, filter and draw by. A column that is not numeric holds indices into its categories. */
export interface Column {
  key: string;
  label: string;
  kind: "fact" | "metric" | "hyperparameter";
  numeric: boolean;
  log?: boolean;
  /** It was chosen, not measured. */
  isSet?: boolean;
  values: Values;
  categories?: string[];
  /** The ends of its axis, if they do not follow the data. */
  low?: number;
  high?: number;
  /** The least and the greatest number, once they were asked for. */
  span?: Range;
}

/** A filter on a column: a range of numbers, or one of some categories. */
export interface Condition {
  low?: number;
  high?: number;
  one?: string[];
}

export type Look = ReturnType<typeof look>;

export interface Control {
  name: string;
  label: string;
  options: (scene: Scene) => Option[];
  /** The value that is chosen at first, if not the first option. */
  first?: (scene: Scene) => string | undefined;
}

/** The data and the look that a chart is drawn with. */
export interface Scene {
  job: number;
  view: View;
  store: Store;
  colours: Look;
  /** The chart is small, one of a grid. */
  compact: boolean;
  narrow: boolean;
  axes: Record<string, string>;
  scales: Record<AxisName, Scale>;
  hidesOutliers: boolean;
  /** Draw the chart again. */
  again: () => void;
  /** The place of the chart on the page. `brushing`: the chart is changing the filters, and shows them already. */
  tile: { id: string; brushing: boolean };
}

export interface Chart {
  id: string;
  title: string;
  /** It takes two places of the grid. */
  wide?: boolean;
  controls?: Control[];
  /** Return which axes people can change. */
  offer?: (scene: Scene) => Offer;
  /** Return the missing requirement of the chart; null when it can be drawn. */
  missing: (scene: Scene) => Missing | null;
  draw: (scene: Scene) => Drawing;
}
