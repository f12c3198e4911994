// Messages for bad input, identical to those of figgen.errors and Python's repr.

/** Python's ValueError. */
export class ValueFault extends Error {}

/** Invalid input. `nearest` are similar valid inputs, in the form that a reader would type. */
export class InputError extends ValueFault {
  about(key) { return Object.assign(this, { key }); }
  constructor(what, { expected = null, got = null, nearest = [], key = "" } = {}) {
    let text = what;
    if (expected !== null) text += `: expected ${expected}`;
    if (got !== null) text += `, got ${repr(got)}`;
    if (nearest.length) text += ` (did you mean ${nearest.join(" or ")}?)`;
    // A tool tries dozens of layouts that are invalid, and nobody reads their stack traces.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(text);
    Object.assign(Error, { stackTraceLimit });
    Object.assign(this, { name: "InputError", what, expected, got, nearest, key: key || (/^[A-Za-z_]\w*$/.test(what) ? what : "") });
  }
}

/** The text that a message shows for a value that `repr` would format differently, such as a list. */
export class Shown {
  constructor(text) { this.text = text; }
}

/** Returns `size` if it is a whole number of at least 1. */
export function check_size(name, size) {
  if (!Number.isInteger(size) || size < 1) throw new InputError(name, { expected: "a whole number ≥ 1", got: size });
  return size;
}

export function check_between(name, value, low, high) {
  if (!(low <= value && value <= high)) throw new InputError(name, { expected: `${grouped(low)} to ${grouped(high)}`, got: value });
}

export function check_share(name, value) {
  if (!(value > 0 && value <= 1)) throw new InputError(name, { expected: "above 0, at most 1", got: value });
}

/** A number with commas between thousands; the browser's own formatter takes 20 ms to start. */
export function grouped(value) {
  const [whole, rest] = String(value).split(".");
  const separated = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? separated : `${separated}.${rest}`;
}

/** A number, string, Boolean or list as Python's repr; whole numbers as int. */
export function repr(value) {
  if (value === null || value === undefined) return "None";
  if (value === true || value === false) return value ? "True" : "False";
  if (typeof value === "number") return number(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "string") return quoted(value);
  if (value instanceof Shown) return value.text;
  const items = Array.from(value, repr);
  return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
}

function number(value) {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Number.isInteger(value)) return BigInt(value).toString();
  const size = Math.abs(value);
  // Python changes to exponents at 1e-4, JavaScript at 1e-6.
  return size < 1e-4 ? value.toExponential().replace(/e-(\d)$/, "e-0$1") : String(value);
}

function quoted(text) {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  const short = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", [mark]: `\\${mark}` };
  const escaped = Array.from(text, (c) => {
    if (short[c]) return short[c];
    const code = c.codePointAt(0);
    const shown = (code >= 32 && code < 127) || code > 160;
    return shown ? c : `\\x${code.toString(16).padStart(2, "0")}`;
  });
  return mark + escaped.join("") + mark;
}

/** The error for a `name` that is not among `known` things of this `kind`. */
export function unknown(kind, name, known) {
  const names = [...known].sort();
  const nearest = closest(name, names);
  const listed = names.slice(0, 12).join(", ") + (names.length > 12 ? ", …" : "");
  const expected = nearest.length ? null : `one of ${listed}`;
  return new InputError(`unknown ${kind} ${repr(name)}`, { expected, nearest });
}

/** Names in `known` that are spelled most like `name`, best first, as Python's difflib ranks. */
export function closest(name, known, count = 3) {
  const alike = [];
  for (const candidate of known) {
    const [a, b] = [Array.from(candidate), Array.from(name)];
    const letters = a.length + b.length;
    const ratio = letters ? (2 * matching(a, b)) / letters : 1;
    if (ratio >= 0.6) alike.push([ratio, candidate]);
  }
  alike.sort(([r, a], [s, b]) => s - r || (a < b ? 1 : -1));
  return alike.slice(0, count).map(([, candidate]) => candidate);
}

// Ratcliff and Obershelp: the longest common substring, then recursively to its left and right.
function matching(a, b) {
  let [length, endA, endB] = [0, 0, 0];
  let above = new Array(b.length + 1).fill(0);
  for (let i = 0; i < a.length; i++) {
    const row = new Array(b.length + 1).fill(0);
    for (let j = 0; j < b.length; j++) {
      if (a[i] !== b[j]) continue;
      row[j + 1] = above[j] + 1;
      if (row[j + 1] > length) [length, endA, endB] = [row[j + 1], i + 1, j + 1];
    }
    above = row;
  }
  if (!length) return 0;
  const before = matching(a.slice(0, endA - length), b.slice(0, endB - length));
  return before + length + matching(a.slice(endA), b.slice(endB));
}
