// Types that all charts share.
import type { EChartsOption, EChartsType } from "echarts";
import type { TipText } from "./tip.js";

export type Direction = "min" | "max";

export type Range = [low: number, high: number];

export interface Option {
  value: string;
  label: string;
}

export interface Table {
  head: { label: string; num?: boolean }[];
  rows: (string | number)[][];
  /** A sentence about the rows, or why there are none. */
  note?: string;
}

/** A place in a chart that the keyboard can reach. */
export interface Item {
  series: number;
  data: number;
  text: string;
  trial?: number;
}

/** The numbers that the colours of a chart show, as a line below it. */
export interface ColourScale {
  label: string;
  range: Range;
  /** The colours from the least to the greatest number, at equal distances. */
  steps: string[];
}

/** A chart as an ECharts option. */
export interface Picture {
  option: EChartsOption;
  scale?: ColourScale | null;
  /** Return the text beside the pointer at an item. */
  tip: (place: { seriesIndex: number; dataIndex: number }) => TipText;
  items: () => Item[];
  label: string;
  height?: number;
  /** Show the tip at the item that the keyboard has reached. */
  tips?: boolean;
  /** Return the text beside the pointer at the name of an axis. */
  tipOfAxis?: (axis: number) => TipText;
  /** Return what depends on the width of the picture: it is set when the width changes too. */
  fitted?: (width: number) => EChartsOption;
  /** The width in pixels below which the chart is moved sideways instead of being compressed. */
  least?: number;
  /** Complete before drawing what no option can express. */
  prepare?: (chart: EChartsType) => void;
  ready?: (chart: EChartsType) => void;
}

interface Described {
  note?: string;
  foot?: string;
  table: () => Table;
}

/** The result of drawing: a picture, or an element that draws itself. */
export type Drawing = Described & (Picture | { element: HTMLElement });

export interface Missing {
  title: string;
  hint: string;
}
