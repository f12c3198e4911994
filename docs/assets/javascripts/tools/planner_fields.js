// The planner's form: the modeler's fields; those of a layout are empty if they are searched. Pure.

import { groupsOf } from "./modeler_fields.js";
import { SEARCHED } from "./planner_state.js";

// Fields that describe a single layout, and fields that the model of time ignores: it has one rank
// order, hides gradients behind the last backward pass, and takes latencies from its fit or a file.
const NO_USE = [
  "order", "microbatches", "hold", "layers_per_stage", "efficiency", "buckets", "alpha_up", "alpha_net",
  "step_time",
];
const OPEN = ["Model", "Hardware", "Batch"];

const plain = (one) => ({ ...one, derived: undefined });

// A size or a choice that is searched if it is left empty.
function searched({ key, label, kind, options, hint }) {
  const about = { key, label, hint };
  if (kind === "select") return { ...about, kind, options: [["", "searched"], ...options], wide: true };
  return { ...about, kind: "whole", empty: "searched", hint: null };
}

// The questions that a reader may ask; the first is the default.
const ASKED = [
  ["", "The best layout for these nodes"], ["deadline", "Fewest nodes for a deadline"],
  ["budget", "Soonest finish for a budget"], ["fewest", "Fewest nodes that fit"],
];
const asks = (...kinds) => ({ ask }) => kinds.includes(ask);
const question = {
  title: "Question", open: true, always: true, nodes: null, says: () => "",
  fields: [
    { key: "ask", label: "Find", kind: "select", options: ASKED, wide: true, hint: null },
    { key: "tokens", label: "Training tokens, billions", kind: "number", hint: "or with a letter: 1T", shows: asks("deadline", "budget") },
    { key: "days", label: "Days", kind: "number", hint: null, shows: asks("deadline") },
    { key: "budget", label: "Budget", kind: "number", hint: "in the currency of your price", shows: asks("budget") },
    { key: "price", label: "Your price per GPU-hour", kind: "number", empty: "none", hint: null, shows: asks("deadline", "budget") },
    { key: "chance", label: "Least chance to fit, %", kind: "number", hint: null },
  ],
};

/** Groups of the form, as `modelerForm` takes them. */
export function planGroups(catalog) {
  const all = groupsOf(catalog);
  const used = all.flatMap((group) => group.fields).filter(({ key }) => !NO_USE.includes(key));
  const held = SEARCHED.map((key) => searched(used.find((one) => one.key === key)));
  const groups = all.map((group) => ({
    ...group, nodes: null, says: () => "",
    title: group.title.replace(" and schedule", ""),
    fields: group.fields.filter(({ key }) => !NO_USE.includes(key) && !SEARCHED.includes(key)).map((one) =>
      one.key === "global_batch" ? { ...one, kind: "whole", empty: "4 Mi tokens", hint: "sequences per step" }
        : one.key === "nodes" ? { ...plain(one), shows: ({ ask }) => !ask } : plain(one)),
  })).filter(({ fields }) => fields.length).map((group) => ({ ...group, open: OPEN.includes(group.title) }));
  const every = { key: "every", label: "Also schedules that the software doesn't have", kind: "check", wide: true };
  return [question, ...groups, { title: "Fix part of the layout", open: false, nodes: null, says: said, fields: [...held, every] }];
}

const said = (state) => SEARCHED.filter((key) => state[key] !== null).map((key) => `${key} ${state[key]}`).join(", ") || "nothing fixed; everything is searched";
