// What the converter computes, as rows of { label, texts, formula, given }, with the formulas of
// `figgen convert`. Pure.

import { InputError } from "../engine/errors.js";
import { collective_sentence, full_bus_bandwidth } from "../models/collectives/measured_words.js";
import { bare_bytes, typed_measure } from "../scenarios/options/typed.js";
import {
  algorithm_bandwidth,
  all_gather_bus_bandwidth,
  all_reduce_bus_bandwidth,
  all_to_all_port_bandwidth,
  dense_peak,
  one_way_bandwidth,
  ring_port_bandwidth,
} from "../step-formulas.js";
import { plainNumber, quantity } from "./quantities.js";

/** The fields at first. */
export const FIRST = {
  collective: "all-reduce", ranks: "16", bytes: "8 GiB", known: "time", time: "43 ms", algbw: "", busbw: "",
  width: "8", ports: "8", line: "400 Gb/s", link: "900 GB/s", ways: "", peak: "3958 TFLOP/s", zeros: "sparse",
};

const BUS_BANDWIDTHS = { algorithm_bandwidth, all_gather_bus_bandwidth, all_reduce_bus_bandwidth };
const PORT_BANDWIDTHS = { all_to_all_port_bandwidth, ring_port_bandwidth };
const EXAMPLES = { B: "8 GiB", s: "43 ms", "B/s": "200 GB/s", "FLOP/s": "1979 TFLOP/s" };

/** The quantity in `text` in the SI `unit`; throws InputError with the field's `key`. */
export function amount(key, label, text, unit) {
  try {
    const value = typed_measure(label, text, unit);
    if (value > 0) return value;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    if (error.nearest.length) throw Object.assign(error, { key });
  }
  throw wrong(key, label, `an amount such as ${EXAMPLES[unit]}`, text);
}

function count(key, label, text, least) {
  try {
    const value = typed_measure(label, text, "1");
    // "1.000" may be one or a thousand.
    if (value >= least && value < 1e9 && value % 1 === 0 && !text.includes(".")) return value;
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
  }
  throw wrong(key, label, `a whole number from ${least}`, text);
}

const wrong = (key, label, expected, got) =>
  Object.assign(new InputError(label, { expected, got: got.trim() === "" ? "nothing" : got.slice(0, 40) }), { key });

const gigabits = (rate) => `${plainNumber((8 * rate) / 1e9, 4)}\u00a0Gb/s`;
const rate = (value) => quantity(value, "B/s", "si.4");

/** The rows about a collective and the answer in a sentence, from the fields; `name` is the formula of the busbw. */
export function collective(state, name) {
  const ranks = count("ranks", "Ranks", state.ranks, 2);
  const message_bytes = amount("bytes", "Largest buffer", state.bytes, "B");
  const per = BUS_BANDWIDTHS[name]({ ranks, message_bytes: 1, time_s: 1 });
  const algbw = {
    time: () => message_bytes / amount("time", "Time", state.time, "s"),
    algbw: () => amount("algbw", "algbw", state.algbw, "B/s"),
    busbw: () => amount("busbw", "busbw", state.busbw, "B/s") / per,
  }[state.known]();
  const time_s = message_bytes / algbw;
  const given = { ranks, message_bytes, time_s };
  const busbw = BUS_BANDWIDTHS[name](given);
  const rows = [
    { label: "time", texts: [quantity(time_s, "s", "si.4")] },
    { label: "algbw", texts: [rate(algbw)], formula: "algorithm_bandwidth", given },
    { label: "busbw", texts: [rate(busbw), gigabits(busbw)], formula: name, given },
  ];
  if (state.width.trim() || state.ports.trim()) rows.push(port(state, ranks, busbw));
  const bare = bare_bytes(state.bytes);
  if (bare) rows.push({ label: "buffer", texts: [bare] });
  const said = collective_sentence(state.collective, ranks, message_bytes, time_s, busbw, fullOf(state, state.collective, ranks));
  return { rows, said };
}

/** The busbw at which the links in the fields are full; null if a field doesn't give it. */
export function fullOf(state, collective, ranks, width = state.width) {
  try {
    const gpus_per_node = String(width).trim() ? count("width", "Ranks on a node", String(width), 1) : ranks;
    const network = gpus_per_node < ranks;
    if (network && !(state.ports.trim() && state.line.trim())) return null;
    const line_rate = network ? amount("line", "Line rate of a port", state.line, "B/s") : oneWay(state).one;
    const ports = network ? count("ports", "Network ports of a node", state.ports, 1) : null;
    return full_bus_bandwidth(collective, ranks, gpus_per_node, ports, line_rate);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    if (error.key === "line") throw error;
    return null;
  }
}

function port(state, ranks, busbw) {
  const gpus_per_node = count("width", "Ranks on a node", state.width, 1);
  const nics_per_node = count("ports", "Network ports of a node", state.ports, 1);
  if (gpus_per_node >= ranks) return { label: "a network port", texts: ["sends nothing: one node"] };
  const formula = state.collective === "all-to-all" ? "all_to_all_port_bandwidth" : "ring_port_bandwidth";
  const given = { ranks, gpus_per_node, nics_per_node, bus_bandwidth_bytes_per_s: busbw };
  const sent = PORT_BANDWIDTHS[formula](given);
  return { label: "a network port sends", texts: [rate(sent), gigabits(sent)], formula, given };
}

/** How a link's rate is counted: as chosen, otherwise a line rate in bits is one direction's. */
export const waysOf = ({ link, ways }) => ways || (/(b|bit)\/s|bps/.test(link) ? "one" : "two");

/** The rate of one direction of a link, with its formula if the field gives both directions together. */
function oneWay(state) {
  const given = amount("link", "Bandwidth", state.link, "B/s");
  if (waysOf(state) !== "two") return { one: given };
  const both = { two_way_bandwidth_bytes_per_s: given };
  return { one: one_way_bandwidth(both), formula: "one_way_bandwidth", given: both };
}

/** A link's and a chip's rate as data sheets print them, and as the guide counts them. */
export const rates = {
  link(state) {
    const { one, ...both } = oneWay(state);
    return [
      { label: "per direction", texts: [rate(one), gigabits(one)], ...both },
      { label: "both directions", texts: [rate(2 * one)] },
    ];
  },
  peak({ peak, zeros }) {
    const given = amount("peak", "Peak", peak, "FLOP/s");
    const sparse = zeros === "sparse" && { formula: "dense_peak", given: { sparse_peak_flops_per_s: given } };
    const dense = sparse ? dense_peak(sparse.given) : given;
    return [
      { label: "dense", texts: [quantity(dense, "FLOP/s", "si.4")], ...sparse },
      { label: "with 2:4 sparsity", texts: [quantity(2 * dense, "FLOP/s", "si.4")] },
    ];
  },
};
