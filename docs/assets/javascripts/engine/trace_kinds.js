// What an event of a profiler's trace is; mirrors figgen.models.profiles.trace_kinds, whose tables it has.

import { tables } from "../profile-tables.js";

const WIDTHS = new Map(Object.entries(tables.type_bytes));
export const PASSES = new Map(Object.entries(tables.passes));
export const KERNELS = new Set(tables.kernels);
export const COPIES = new Set(tables.copies);
export const LAUNCHES = new Set(tables.launches);
export const ONE_SIDED = new Set(tables.one_sided);
export const COMPUTING = tables.ours[0];
export const MADE_BY = tables.made_by;
export const STEP = tables.step;
export const PARTS = tables.parts;
const COMMUNICATION = tables.ours[1];
const WRAPS = ["c10d::", "autograd::", "torch::autograd::", "record_param_comms"];

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

/** A value as Python's str writes it: nothing for what is missing, lists with a space. */
export function text(value) {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value)) return value.length ? `[${value.map(text).join(", ")}]` : "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export const argsOf = (event) => (isObject(event.args) ? event.args : {});
const nameOf = (event) => text(event.name);

/** The collective that a name of NCCL, gloo or c10d means; empty where it means none. */
export function collectiveOf(name) {
  const letters = name.toLowerCase().replace(/^nccldevkernel/, "").replace(/[^a-z]/g, "");
  return tables.collectives.find(([part]) => letters.includes(part))?.[1] ?? "";
}

/** Whether the event is a collective while it runs, and not what asks for one. */
export function isCall(event) {
  if (KERNELS.has(event.cat)) return nameOf(event).toLowerCase().includes("nccl");
  return event.cat === COMMUNICATION || (event.cat === "user_annotation" && nameOf(event).startsWith("gloo:"));
}

/** Whether an operator computes on a CPU, rather than calling those that do. */
export function isWork(event) {
  const name = nameOf(event);
  return event.cat === "cpu_op" && name.includes("::") && !WRAPS.some((start) => name.startsWith(start));
}

/** The group of a call, { name, collective, size, ranks }: its own arguments, or the only one's. */
export function groupOf(event, header) {
  const args = argsOf(event);
  const kind = collectiveOf(text(args["Collective name"])) || collectiveOf(nameOf(event));
  const config = isObject(header.distributedInfo) ? header.distributedInfo.pg_config : null;
  const groups = Array.isArray(config) ? config.filter(isObject) : [];
  const name = text(args["Process Group Name"]);
  let known = groups.find((group) => name && text(group.pg_name) === name) ?? {};
  if (!name && !Object.hasOwn(args, "Collective name") && groups.length === 1) [known] = groups;
  const described = text(args["Process Group Description"]) || text(known.pg_desc) || name;
  const ranks = text(args["Process Group Ranks"]) || text(known.ranks);
  const size = Object.hasOwn(args, "Group size") ? args["Group size"] : known.pg_size;
  return { name: described, collective: kind || "other", size: Number.isInteger(size) ? size : 0, ranks };
}

/** Bus bandwidth over what the buffer divided by the time gives; 0 for unknown sizes. */
export function factorOf({ collective, size }) {
  if (!PASSES.has(collective)) return 1;
  return size ? (PASSES.get(collective) * (size - 1)) / size : 0;
}

const numeric = (value) => (typeof value === "number" && !Number.isNaN(value) ? value : 0);
const widthOf = (type) => WIDTHS.get(text(type).toLowerCase()) ?? 0;

/** Bytes of the largest buffer of a rank in a call; 0 where the trace does not say. */
export function bytesOf(event, group) {
  const args = argsOf(event);
  if (Object.hasOwn(args, "buffer bytes")) return numeric(args["buffer bytes"]) * (numeric(args.calls) || 1);
  const width = widthOf(args.dtype);
  if (width) return width * Math.max(numeric(args["In msg nelems"]), numeric(args["Out msg nelems"]));
  const { "Input Dims": shapes, "Input type": types } = args;
  if (!Array.isArray(shapes) || !Array.isArray(types)) return 0;
  let bytes = 0;
  for (let at = 0; at < Math.min(shapes.length, types.length); at++) {
    const shape = shapes[at];
    if (!Array.isArray(shape) || !shape.length || !shape.every(Number.isInteger)) continue;
    bytes += widthOf(types[at]) * shape.reduce((product, size) => product * size, 1);
  }
  return bytes * (group.collective === "all-gather" ? group.size : 1);
}

const AXES = Object.entries(tables.axes).map(([axis, words]) => [axis, new Set(words)]);

/** The axis of a communicator by its name; one-sided calls without a telling one are "pp". */
export function axisOf({ name, collective }) {
  const words = name.toLowerCase().split(/[^a-z]+/);
  for (const [axis, known] of AXES) if (words.some((word) => known.has(word))) return axis;
  if (ONE_SIDED.has(collective)) return "pp";
  return name === "default_pg" ? "dp" : "other";
}
