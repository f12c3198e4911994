// How many nodes: what of the planner's worker is loaded when a reader asks for it.

export { sizedCounts } from "../engine/sizing.js";
