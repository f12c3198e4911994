// A chart that was computed here, in Plotly's format. Pure.

import { Bars, Curves } from "../charts.js";
import { timeline } from "../renderers/explore_lanes.js";
import { bars, recomputed_curves } from "../renderers/explore_plots.js";

// Python's dictionaries are maps here; missing numbers are null.
function plain(part) {
  if (part instanceof Map) return Object.fromEntries([...part].map(([name, value]) => [name, plain(value)]));
  if (Array.isArray(part)) return part.map(plain);
  return typeof part === "number" && !Number.isFinite(part) ? null : part;
}

/** { data, layout } of a chart of curves, bars or lanes. */
export function redrawn(chart) {
  const explored = chart instanceof Curves ? recomputed_curves(chart) : chart instanceof Bars ? bars(chart) : timeline(chart);
  return { data: plain(explored.data), layout: plain(explored.layout) };
}
