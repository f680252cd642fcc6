// Every chart of a search, in the order in which they are offered.
/** @import { Chart } from "../types.js" */
import { contour } from "./contour.js";
import { curves } from "./curves.js";
import { heat } from "./heat.js";
import { history } from "./history.js";
import { importance } from "./importance.js";
import { parallel } from "./parallel.js";
import { pareto } from "./pareto.js";
import { rank, slice } from "./points.js";
import { timeline } from "./timeline.js";

/** @type {Chart[]} */
export const CHARTS = [history, parallel, importance, slice, contour, heat, rank, pareto, timeline, curves];
