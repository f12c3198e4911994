// SI numbers as text, and what that text says when it is read back; mirrors figgen.units. What readers
// type is read by figgen.quantity_text, printed.

import { grouped } from "./errors.js";

const NBSP = "\u00a0";
const COUNTS = new Set(["rank", "GPU", "node", "stage", "microbatch", "chunk", "layer", "head",
  "expert", "sequence", "sample", "step", "bucket", "segment", "link", "port", "slot", "group",
  "replica", "message", "param", "token", "element", "month", "nat"]);
const MEASURED = new Set(["B", "s", "FLOP", "W", "J", "Hz"]);
const SMALL = { f: 1e-15, p: 1e-12, n: 1e-9, µ: 1e-6, m: 1e-3 };
const LARGE = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, Z: 1e21, Y: 1e24 };
const BINARY = { Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50 };
const SHORT_SCALE = { K: 1e3, M: 1e6, B: 1e9, T: 1e12 };
const TIMES = [["day", 86_400], ["h", 3600], ["min", 60]];
const UP = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * `value`, SI in `unit`, as { text, read }: the text that a page shows, and the number that it
 * stands for, NaN where the text is no quantity. `spec` is si, bytes, gib, time, flops, unit or
 * nothing, each with .digits; or ".1%", ".2f", ",".
 */
export function quantity(value, unit, spec = "") {
  const [name, digits] = spec.split(".");
  if (!(name in SPECS) || (spec.includes(".") && !name)) return python(value, spec);
  const { text, factor } = SPECS[name](Math.abs(value), unit, Number(digits || 3));
  const read = quantity.read(text) * factor;
  return value < 0 ? { text: `−${text}`, read: -read } : { text, read };
}

/** The number at the beginning of a text. */
quantity.read = (text) => {
  const [, number, power] = /^(−?[\d,.]+)(?: ?\u00a0×\u00a010([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?/.exec(text) ?? [];
  if (number === undefined) return NaN;
  const plain = number.replaceAll(",", "").replace("−", "-");
  return Number(`${plain}e${power ? lowered(power) : 0}`);
};

const lowered = (power) => Array.from(power, (c) => (c === "⁻" ? "-" : UP.indexOf(c))).join("");

// ".1%", ".2f", ",", as Python's format writes them.
function python(value, spec) {
  const [, comma, places, kind] = /^(,?)(?:\.(\d))?([%fd]?)$/.exec(spec);
  const shown = kind === "%" ? 100 * value : value;
  const decimals = places ?? (kind === "%" || kind === "f" ? 6 : null);
  const plain = decimals === null ? String(Math.abs(shown)) : fixed(Math.abs(shown), Number(decimals));
  const number = comma ? grouped(plain) : plain;
  const text = `${shown < 0 ? "−" : ""}${number}${kind === "%" ? "%" : ""}`;
  return { text, read: quantity.read(text) / (kind === "%" ? 100 : 1) };
}

/** How many significant digits say exactly this number, trailing zeros not counted. */
export const significantDigits = (value) =>
  value.toExponential().replace(/e.*|[-.]/g, "").replace(/0+$/, "").length || 1;

/** At least `digits` significant ones, separators, ×10ⁿ when it is huge. */
export function plainNumber(value, digits = 3) {
  if (value < 0) return `−${plainNumber(-value, digits)}`;
  if (value === Infinity) return "∞";
  if (value && (value >= 1e15 || value < Number(`1e-${digits + 1}`))) return powerOfTen(value, digits);
  if (Number.isInteger(value)) return grouped(String(value));
  const exponent = Number(exponential(value, digits - 1).split("e")[1]);
  const shown = fixed(value, Math.max(0, digits - 1 - exponent));
  const same = Math.abs(Number(shown) - value) <= 1e-9 * Math.max(value, Number(shown));
  return grouped(same ? unpadded(shown) : shown);
}

/** A number as mantissa and power, "3.15 × 10²³". */
export function powerOfTen(value, digits = 3) {
  const [mantissa, power] = exponential(value, digits - 1).split("e");
  const shown = Number(`${mantissa}e${power}`) === value ? unpadded(mantissa) : mantissa;
  const raised = Array.from(String(Number(power)), (c) => (c === "-" ? "⁻" : UP[c])).join("");
  return `${shown.replace("-", "−")}${NBSP}×${NBSP}10${raised}`;
}

const unpadded = (shown) => (shown.includes(".") ? shown.replace(/\.?0+$/, "") : shown);

// JavaScript rounds a tie up, Python to the even digit: the exact digits tell.
function exponential(value, digits) {
  const [exact, power] = value.toExponential(Math.min(100, digits + 40)).split("e");
  return toEven(exact, digits, `e${power}`) ?? value.toExponential(digits);
}

function fixed(value, digits) {
  if (value >= 1e21) return BigInt(value) + (digits ? `.${"0".repeat(digits)}` : "");
  return toEven(value.toFixed(Math.min(100, digits + 40)), digits, "") ?? value.toFixed(digits);
}

// The even one of two equally near numbers, where that is the lower one.
function toEven(exact, digits, power) {
  const cut = exact.indexOf(".") + 1 + digits;
  const below = exact.slice(0, digits ? cut : cut - 1);
  return /^50*$/.test(exact.slice(cut)) && below.at(-1) % 2 === 0 ? below + power : null;
}

// Under the largest prefix, or none, that leaves at least 1 before the point after rounding.
function prefixed(value, digits, prefixes, words, readable = true) {
  const factors = [["", 1], ...Object.entries(prefixes)].sort(([, a], [, b]) => a - b);
  const fits = ([, factor]) => Number(exponential(value / factor, digits - 1)) >= 1;
  const chosen = (Number.isFinite(value) ? factors.filter(fits) : []).at(-1)
    ?? (value > 0 && value < 1 ? factors[0] : ["", 1]);
  const number = plainNumber(value / chosen[1], digits);
  const text = words ? `${number}${NBSP}${chosen[0]}${words}` : `${number}${chosen[0]}`;
  return { text, factor: readable || ["", "K", "M", "T"].includes(chosen[0]) ? chosen[1] : NaN };
}

function si(value, unit, digits) {
  const [above] = unit.split("/");
  const below = unit.slice(above.length);
  if (MEASURED.has(above)) {
    const prefixes = above === "B" || above === "FLOP" ? LARGE : { ...SMALL, ...LARGE };
    return prefixed(value, digits, prefixes, unit);
  }
  const words = (above === "USD" ? "USD" : "") + below;
  const found = value >= 1000
    ? prefixed(value, digits, SHORT_SCALE, "", false)
    : { text: plainNumber(value, digits), factor: 1 };
  return words ? withWords(found, words) : found;
}

// "380 /s" is no quantity to whoever reads it back.
const withWords = ({ text, factor }, words) =>
  ({ text: `${text}${NBSP}${words}`, factor: words.startsWith("/") ? NaN : factor });

function time(value, unit, digits) {
  if (value < 60 || value === Infinity) return prefixed(value, digits, SMALL, unit);
  const [name, factor] = TIMES.find(([, length]) => value >= length);
  const number = plainNumber(value / factor, digits);
  const days = name === "day" && number !== "1" ? "s" : "";
  return { text: `${number}${NBSP}${name}${days}${unit.slice(1)}`, factor };
}

function plainUnit(value, unit, digits) {
  const found = { text: plainNumber(value, digits), factor: 1 };
  const [above] = unit.split("/");
  const plural = COUNTS.has(above) && value !== 1 ? (above.endsWith("ch") ? "es" : "s") : "";
  const words = (above === "1" ? "" : above + plural) + unit.slice(above.length);
  return words ? withWords(found, words) : found;
}

function natural(value, unit, digits) {
  if (unit === "s") return time(value, unit, digits);
  const measured = MEASURED.has(unit.split("/")[0]) && unit !== "FLOP/B";
  return (measured ? si : plainUnit)(value, unit, digits);
}

const SPECS = {
  "": natural, si, time, flops: si, unit: plainUnit,
  bytes: (value, unit, digits) => prefixed(value, digits, LARGE, unit),
  gib: (value, unit, digits) => prefixed(value, digits, BINARY, unit),
};
