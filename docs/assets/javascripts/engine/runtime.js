// Python functions that JavaScript lacks, for modules that figgen.translation prints.

import { Shown, ValueFault, grouped, repr } from "./errors.js";

export { repr };

/** Strings for a value that are equal if and only if Python's values are equal. */
export function key(value) {
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return `'${value}`;
  if (value === null || value === undefined) return "None";
  if (typeof value !== "object") return typeof value === "function" ? identity(value) : String(Number(value));
  if (value instanceof Record) return value.$key;
  if (Array.isArray(value)) return `(${(value.every(isNumber) ? value : value.map(key)).join("\u0001")})`;
  const parts = Array.from(value, key);
  return `(${(value instanceof Set ? parts.sort() : parts).join("\u0001")})`;
}
const isNumber = (value) => typeof value === "number";

const known = new WeakMap();
let count = 0;
function identity(value) {
  if (!known.has(value)) known.set(value, `@${++count}`);
  return known.get(value);
}

/** Compares with a different record by fields. */
export class Record {
  get $key() {
    const { $name, $fields } = this;
    const value = $fields ? `${$name}(${$fields.map((name) => key(this[name])).join("\u0001")})` : identity(this);
    Object.defineProperty(this, "$key", { value });
    return value;
  }
}
export const fields = (cls, names) =>
  Object.assign(cls.prototype, { $name: `${cls.name}${++count}`, $fields: names.split(" ") });

/** A record of values by name; other fields have their defaults. */
export const record_of = (cls, given) => new cls(...cls.prototype.$fields.map((name) => given.get(name)));
/** A copy of a record with the values in `changed`. */
export function replaced(one, changed) {
  const values = Object.values(one); // in the order of the fields, which come first
  for (const name in changed) values[one.$fields.indexOf(name)] = changed[name];
  return new one.constructor(...values);
}

/** Properties that are computed once for a record. */
export function lazily(cls, names) {
  for (const name of names.split(" ")) {
    const { get } = Object.getOwnPropertyDescriptor(cls.prototype, name);
    const held = `$${name}`;
    Object.defineProperty(cls.prototype, name, { get() { return (this[held] ??= get.call(this)); } });
  }
}

/** A dictionary whose keys compare by value. */
export class KeyMap extends Map {
  get(name) { return super.get(key(name))?.[1]; }
  set(name, value) {
    const text = key(name);
    return super.set(text, [super.get(text)?.[0] ?? name, value]);
  }
  has(name) { return super.has(key(name)); }
  delete(name) { return super.delete(key(name)); }
  keys() { return Array.from(super.values(), ([name]) => name).values(); }
  values() { return Array.from(super.values(), ([, value]) => value).values(); }
  entries() { return super.values(); }
  [Symbol.iterator]() { return super.values(); }
}

/** A set whose items compare by value. */
export class KeySet extends Set {
  #items = new Map();
  constructor(items = []) {
    super();
    for (const item of items) this.add(item);
  }
  add(item) {
    const text = key(item);
    if (!this.#items.has(text)) this.#items.set(text, item);
    return this;
  }
  has(item) { return this.#items.has(key(item)); }
  delete(item) { return this.#items.delete(key(item)); }
  get size() { return this.#items.size; }
  values() { return this.#items.values(); }
  [Symbol.iterator]() { return this.#items.values(); }
}

/** A function that remembers its last `most` answers. */
export function cached(answer, most) {
  const answers = new Map();
  return (...given) => {
    const asked = given.length === 1 ? key(given[0]) : key(given);
    let found = answers.get(asked);
    if (found === undefined) {
      if (answers.size >= most) answers.delete(answers.keys().next().value);
      answers.set(asked, found = answer(...given));
    }
    return found;
  };
}

export const equal = (one, other) => one === other || (typeof one === "number" && typeof other === "number" ? false : key(one) === key(other));
export const truth = (value) =>
  (Array.isArray(value) ? value.length > 0 : value instanceof Map || value instanceof Set ? value.size > 0 : Boolean(value));
export const either = (value, other) => (truth(value) ? value : other());
export const both = (value, other) => (truth(value) ? other() : value);

/** The order of two values; arrays by their first difference. */
export function compare(one, other) {
  if (!Array.isArray(one)) return one < other ? -1 : one > other ? 1 : 0;
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    const found = compare(one[at], other[at]);
    if (found) return found;
  }
  return one.length - other.length;
}

const same = (one) => one;
export function sort(items, by = same, backwards = false) {
  const sign = backwards ? -1 : 1;
  return items.sort((one, other) => sign * compare(by(one), by(other)));
}
export const sorted = (items, by, backwards) => sort([...items], by, backwards);

function extreme(sign, items, by = same, usual) {
  if (!items.length && usual !== undefined) return usual;
  let [best] = items;
  let most = by(best);
  for (let at = 1; at < items.length; at++) {
    const value = by(items[at]);
    if (sign * compare(value, most) > 0) [best, most] = [items[at], value];
  }
  return best;
}
export const max = (items, by, usual) => extreme(1, items, by, usual);
export const min = (items, by, usual) => extreme(-1, items, by, usual);

export function range(start, end = null, step = 1) {
  const first = end === null ? 0 : start;
  const count = Math.ceil(((end ?? start) - first) / step);
  const numbers = [];
  for (let at = 0; at < count; at++) numbers.push(first + at * step);
  return numbers;
}
export const enumerate = (items, start = 0) => items.map((item, at) => [at + start, item]);
export const zip = (...lists) => transposed(lists);
export function transposed(rows) {
  const columns = [];
  let count = rows.length ? rows[0].length : 0;
  for (const row of rows) if (row.length < count) count = row.length;
  for (let at = 0; at < count; at++) columns.push(rows.map((row) => row[at]));
  return columns;
}
/** Appends items to a list; `push(...items)` would put each on the stack first. */
export function extend(list, items) {
  for (let at = 0, count = items.length; at < count; at++) list.push(items[at]);
}
/** Replaces the items from `start` to `end`. */
export function put(list, start, end, items) {
  const [from, to] = [start, end].map((at) => Math.min(Math.max(at < 0 ? at + list.length : at, 0), list.length));
  const [after, given] = [list.slice(Math.max(from, to)), [...items]];
  list.length = from;
  extend(list, given);
  extend(list, after);
}
export const pairwise = (items) => items.slice(1).map((item, at) => [items[at], item]);
export const reversed = (items) => [...items].reverse();
export const repeated = (items, times) => (items.length === 1 ? Array(Number(times)).fill(items[0]) : range(times).flatMap(() => items));
export function strided(items, start, end, step) {
  const part = step < 0 ? [...items].reverse() : items.slice(start ?? 0, end ?? items.length);
  const kept = [...part].filter((_, at) => at % Math.abs(step) === 0);
  return typeof items === "string" ? kept.join("") : kept;
}

export const sum = (items, start = 0) => items.reduce((total, item) => total + item, start);
export const prod = (items) => items.reduce((total, item) => total * item, 1);
export const modulo = (one, other) => ((one % other) + other) % other;
export const divmod = (one, other) => [Math.floor(one / other), modulo(one, other)];
export const squared = (value) => value * value;
export function round(value, digits = 0) {
  if (digits) {
    if (!(Math.abs(value) < 1e21)) return value;
    const shown = value.toFixed(digits);
    // Ties round to the even digit, whereas toFixed rounds them up.
    const middle = Math.abs((value * 2 ** (digits + 1)) % 2) === 1 && Number(shown.at(-1)) % 2;
    return Number(middle ? (value * (1 - 2 ** -52)).toFixed(digits) : shown);
  }
  const low = Math.floor(value);
  return value - low === 0.5 ? low + (low % 2 ? 1 : 0) : Math.round(value);
}

/** The sum rounded once; Shewchuk 1997, as in Python's math module. */
export function fsum(items) {
  const partials = [];
  for (let x of items) {
    let used = 0;
    for (let y of partials) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low) partials[used++] = low;
      x = high;
    }
    partials.length = used;
    partials.push(x);
  }
  let at = partials.length;
  if (!at) return 0;
  let high = partials[--at], low = 0;
  while (at > 0) {
    const x = high, y = partials[--at];
    high = x + y;
    low = y - (high - x);
    if (low) break;
  }
  // The lower half decides how a tie is rounded.
  if (at > 0 && ((low < 0 && partials[at - 1] < 0) || (low > 0 && partials[at - 1] > 0))) {
    const y = low * 2, x = high + y;
    if (y === x - high) high = x;
  }
  return high;
}

export const subset = (one, other) => [...one].every((item) => other.has(item));
export const disjoint = (one, other) => [...other].every((item) => !one.has(item));
const like = (one, items) => new one.constructor(items);
export const united = (one, others) => like(one, [...one, ...others.flatMap((other) => [...other])]);
export const joined = (one, other) => united(one, [other]);
export const common = (one, other) => like(one, [...one].filter((item) => other.has(item)));
export const without = (one, other) => like(one, [...one].filter((item) => !other.has(item)));
export function updated(one, other) {
  for (const item of other) if (one instanceof Map) one.set(...item); else one.add(item);
}
export const got = (map, name, usual) => (map.has(name) ? map.get(name) : usual);
export function take(map, name, usual) {
  const found = got(map, name, usual);
  map.delete(name);
  return found;
}
export function counted(items, kind) {
  const found = kind === "Map" ? new Map() : new KeyMap();
  for (const item of items) found.set(item, (found.get(item) ?? 0) + 1);
  return found;
}

/** A float as Python formats it. */
export function decimal(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  if (Number.isInteger(value)) return Math.abs(value) < 1e16 ? `${value}.0` : value.toExponential();
  return repr(value);
}
export const text = (value) => (typeof value === "string" ? value : value?.$fields ? value.toString() : repr(value));
export const listed = (items) => `[${Array.from(items, repr).join(", ")}]`;
export { Shown };

/** Formats a number by a Python format spec: "," "+,.1f" ".3g" ".0%" ".2e" "d". */
export function format(value, spec) {
  const [, plus, comma, digits, kind] = /^(\+?)(,?)(?:\.(\d+))?([defgs%]?)$/.exec(spec) ?? unformatted(spec);
  if (typeof value === "string") return value;
  const size = Math.abs(kind === "%" ? 100 * value : value), places = Number(digits ?? 6);
  let shown;
  if (!Number.isFinite(size)) shown = `${decimal(size)}${kind === "%" ? "%" : ""}`;
  else if (kind === "%") shown = `${fixed(size, places)}%`;
  else if (kind === "f") shown = fixed(size, places);
  else if (kind === "e") shown = padded(exponential(size, places));
  else if (digits === undefined && kind !== "g") shown = text(size);
  else shown = general(size, Math.max(places, 1));
  const sign = value < 0 ? "-" : plus;
  return sign + (comma ? grouped(shown) : shown);
}
function unformatted(spec) { throw new ValueFault(`Invalid format specifier ${repr(spec)}`); }

function general(size, places) {
  const [mantissa, power] = exponential(size, places - 1).split("e");
  const trim = (number) => (number.includes(".") ? number.replace(/\.?0+$/, "") : number);
  if (power < -4 || power >= places) return padded(`${trim(mantissa)}e${power}`);
  return trim(fixed(size, Math.max(0, places - 1 - power)));
}
const padded = (number) => number.replace(/e([+-])(\d)$/, "e$10$2");

// JavaScript rounds ties up, Python to the even digit. Only a value whose next digit is a five
// can be a tie, which its exact digits then decide.
function exponential(value, digits) {
  const shown = value.toExponential(digits);
  if (digits > 99 || !value.toExponential(digits + 1).includes("5e")) return shown;
  const [exact, power] = value.toExponential(Math.min(100, digits + 40)).split("e");
  return toEven(exact, digits, `e${power}`) ?? shown;
}
function fixed(value, digits) {
  if (value >= 1e21) return BigInt(value) + (digits ? `.${"0".repeat(digits)}` : "");
  const shown = value.toFixed(digits);
  if (digits > 99 || !value.toFixed(digits + 1).endsWith("5")) return shown;
  return toEven(value.toFixed(Math.min(100, digits + 40)), digits, "") ?? shown;
}
function toEven(exact, digits, power) {
  const cut = exact.indexOf(".") + 1 + digits;
  const below = exact.slice(0, digits ? cut : cut - 1);
  return /^50*$/.test(exact.slice(cut)) && below.at(-1) % 2 === 0 ? below + power : null;
}

export function split(value, by = null, most = Infinity) {
  if (by === null) return value.trim() ? value.trim().split(/\s+/) : [];
  const parts = value.split(by);
  return parts.length > most + 1 ? [...parts.slice(0, most), parts.slice(most).join(by)] : parts;
}
export const fullmatch = (pattern, value) => new RegExp(`^(?:${pattern.source})$`, pattern.flags.replace("m", "")).exec(value);

/** Parses a string as `int` or `float` does. */
export function whole(value) {
  if (typeof value === "number") return Math.trunc(value);
  if (!/^\s*[+-]?\d+(_\d+)*\s*$/.test(value)) throw new ValueFault(`invalid literal for int() with base 10: ${repr(value)}`);
  return Number(value.replaceAll("_", ""));
}
export function number(value) {
  if (typeof value === "number") return value;
  const found = /^\s*[+-]?(inf|infinity|nan)\s*$/i.exec(value);
  if (found) return found[1].toLowerCase() === "nan" ? NaN : value.includes("-") ? -Infinity : Infinity;
  if (!/^\s*[+-]?(\d+(_\d+)*\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(value)) throw new ValueFault(`could not convert string to float: ${repr(value)}`);
  return Number(value.replaceAll("_", ""));
}

// Sun's error function (fdlibm, s_erf.c, freely granted), which is the C library's: its ranges with
// the coefficients of numerators and denominators.
const ERF = [
  [[1.28379167095512558561e-01, -3.25042107247001499370e-01, -2.84817495755985104766e-02, -5.77027029648944159157e-03, -2.37630166566501626084e-05],
    [1, 3.97917223959155352819e-01, 6.50222499887672944485e-02, 5.08130628187576562776e-03, 1.32494738004321644526e-04, -3.96022827877536812320e-06]],
  [[-2.36211856075265944077e-03, 4.14856118683748331666e-01, -3.72207876035701323847e-01, 3.18346619901161753674e-01, -1.10894694282396677476e-01, 3.54783043256182359371e-02, -2.16637559486879084300e-03],
    [1, 1.06420880400844228286e-01, 5.40397917702171048937e-01, 7.18286544141962662868e-02, 1.26171219808761642112e-01, 1.36370839120290507362e-02, 1.19844998467991074170e-02]],
  [[-9.86494403484714822705e-03, -6.93858572707181764372e-01, -1.05586262253232909814e+01, -6.23753324503260060396e+01, -1.62396669462573470355e+02, -1.84605092906711035994e+02, -8.12874355063065934246e+01, -9.81432934416914548592e+00],
    [1, 1.96512716674392571292e+01, 1.37657754143519042600e+02, 4.34565877475229228821e+02, 6.45387271733267880336e+02, 4.29008140027567833386e+02, 1.08635005541779435134e+02, 6.57024977031928170135e+00, -6.04244152148580987438e-02]],
  [[-9.86494292470009928597e-03, -7.99283237680523006574e-01, -1.77579549177547519889e+01, -1.60636384855821916062e+02, -6.37566443368389627722e+02, -1.02509513161107724954e+03, -4.83519191608651397019e+02],
    [1, 3.03380607434824582924e+01, 3.25792512996573918826e+02, 1.53672958608443695994e+03, 3.19985821950859553908e+03, 2.55305040643316442583e+03, 4.74528541206955367215e+02, -2.24409524465858183362e+01]],
];
export function erf(value) {
  const x = Math.abs(value);
  const ratio = (range, s) => {
    const [above, below] = ERF[range].map((terms) => terms.reduceRight((total, term) => total * s + term, 0));
    return above / below;
  };
  if (x < 0.84375) return value + value * ratio(0, value * value);
  if (x < 1.25) return Math.sign(value) * (8.45062911510467529297e-01 + ratio(1, x - 1));
  if (x >= 6) return Math.sign(value);
  const z = new Float64Array([x]);
  new Uint32Array(z.buffer)[0] = 0;
  const r = Math.exp(-z[0] * z[0] - 0.5625) * Math.exp((z[0] - x) * (z[0] + x) + ratio(x < 1 / 0.35 ? 2 : 3, 1 / (x * x)));
  return Math.sign(value) * (1 - r / x);
}

/** A record's fields by name, and those of records in it. */
export const asdict = (value) => {
  if (value instanceof Record) return new Map(value.$fields.map((name) => [name, asdict(value[name])]));
  return Array.isArray(value) ? value.map(asdict) : value;
};
