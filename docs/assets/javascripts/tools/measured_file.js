// What measure.py wrote on a reader's machine, as the modeler's own numbers; mirrors
// figgen.catalog.measured_file and figgen.scenarios.measured. Pure; loaded on demand.

import { InputError } from "../engine/errors.js";
import { ownFrom } from "./modeler_hardware.js";
import { OWN, SCALES } from "./modeler_state.js";

const FORMAT = "parallelism-computed/measured";
const LONGEST = 2 ** 24;
const LONG_MESSAGE = 2 ** 24;
const KEYS = {
  products: ["m", "n", "k", "seconds"],
  layers: ["hidden", "ffn", "sequence", "batch", "both_s"],
  collectives: ["ranks", "message_bytes", "seconds"],
};

const productRate = ({ m, n, k, seconds }) => (2 * m * n * k) / seconds;
function layerRate({ hidden, ffn, sequence, batch, both_s }) {
  const weights = 4 * hidden * hidden + 3 * hidden * ffn;
  return (3 * (2 * weights * batch * sequence + 2 * batch * hidden * sequence * sequence)) / both_s;
}
const linkRate = ({ ranks, message_bytes, seconds }) => (2 * ((ranks - 1) / ranks) * message_bytes) / seconds;

/**
 * { compute_efficiency, memory_bytes, scale_up_bytes_per_s, network_bytes_per_s } of a file's text, with
 * null for what it does not measure; the efficiency is of `peak_flops_per_s`, the dense 16-bit peak, or of the
 * best product where that is null. Throws InputError for a file that is none, or says nonsense.
 */
export function ownHardware(text, peak_flops_per_s) {
  const { machine, products, layers, collectives } = read(text);
  const best = Math.max(...products.filter(({ format }) => format === "bf16").map(productRate));
  if (best === -Infinity) throw new InputError("products", { expected: "some in bf16", got: "none" });
  const reached = layers.length ? Math.max(...layers.map(layerRate)) : best;
  const reduced = collectives.filter(({ collective, ranks }) => collective === "all_reduce" && ranks > 1);
  const least = Math.min(LONG_MESSAGE, Math.max(0, ...reduced.map((row) => row.message_bytes)));
  const long = reduced.filter((row) => row.message_bytes >= least).map(linkRate);
  const link = long.length ? Math.max(...long) : null;
  return {
    compute_efficiency: Math.min(1, reached / (peak_flops_per_s ?? best)),
    memory_bytes: machine.memory_bytes || null,
    scale_up_bytes_per_s: machine.nodes === 1 ? link : null,
    network_bytes_per_s: machine.nodes > 1 ? link : null,
  };
}

/**
 * The changes to the modeler's `state`, of which the engine made `setup`, that make the machine of a file its
 * own hardware. What the file does not measure stays as it is.
 */
export function measuredChanges(text, catalog, state, setup) {
  const peak = catalog.accelerators[state.chip]?.peaks.bf16 ?? state.peak * SCALES.peak;
  const own = ownHardware(text, peak);
  const written = (value, key) => (value === null ? {} : { [key]: Number((value / SCALES[key]).toPrecision(6)) });
  const changes = {
    chip: OWN, dtype: "bf16", ...written(peak, "peak"), ...written(own.memory_bytes, "hbm"),
    ...written(own.scale_up_bytes_per_s, "up"),
    ...(own.network_bytes_per_s === null ? {} : { nic: OWN, ...written(own.network_bytes_per_s, "net") }),
    efficiency: Math.max(0.01, Number(own.compute_efficiency.toPrecision(6))),
  };
  return setup ? ownFrom(setup, changes) : changes;
}

function read(text) {
  let content = null;
  try {
    if (text.length <= LONGEST) content = JSON.parse(text);
  } catch {
    // told below
  }
  if (content?.format !== FORMAT || content.version !== 1 || !Number.isInteger(content.machine?.nodes)) {
    throw new InputError("the file", { expected: "what measure.py writes" });
  }
  const tables = Object.entries(KEYS).map(([name, keys]) => [name, rows(name, keys, content[name] ?? [])]);
  return { machine: content.machine, ...Object.fromEntries(tables) };
}

function rows(name, keys, listed) {
  if (!Array.isArray(listed)) throw new InputError(name, { expected: "a list" });
  listed.forEach((row, at) => {
    for (const key of keys) {
      const value = row?.[key];
      if (!(Number.isFinite(value) && value > 0)) {
        throw new InputError(`${name}[${at}].${key}`, { expected: "a number above 0", got: value ?? "missing" });
      }
    }
  });
  return listed;
}
