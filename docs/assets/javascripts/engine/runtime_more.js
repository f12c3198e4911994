// More Python functions, for the readers of scripts and logs and for a few models; other tools do not
// load this file.

import { unknown } from "./errors.js";
import { cached } from "./runtime.js";

export class DefaultMap extends Map {
  constructor(make) { super(); this.make = make; }
  get(name) {
    if (!this.has(name)) this.set(name, this.make());
    return super.get(name);
  }
}

export function accumulate(items) {
  let total = 0;
  return items.map((item, at) => (total = at ? total + item : item));
}
export function setdefault(map, name, usual) {
  if (!map.has(name)) map.set(name, usual);
  return map.get(name);
}

const ends = (letters) => letters.replace(/[\\\]^-]/g, "\\$&");
export const lstrip = (value, letters = " \t\r\n\f\v") => value.replace(new RegExp(`^[${ends(letters)}]+`), "");
export const rstrip = (value, letters = " \t\r\n\f\v") => value.replace(new RegExp(`[${ends(letters)}]+$`), "");
export const strip = (value, letters) => lstrip(rstrip(value, letters), letters);
export function partition(value, by) {
  const at = value.indexOf(by);
  return at < 0 ? [value, "", ""] : [value.slice(0, at), by, value.slice(at + by.length)];
}
export function rpartition(value, by) {
  const at = value.lastIndexOf(by);
  return at < 0 ? ["", "", value] : [value.slice(0, at), by, value.slice(at + by.length)];
}
export const removeprefix = (value, start) => (start && value.startsWith(start) ? value.slice(start.length) : value);
export const removesuffix = (value, end) => (end && value.endsWith(end) ? value.slice(0, -end.length) : value);

const withFlags = (pattern, flags) => new RegExp(pattern.source, [...new Set(pattern.flags + flags)].join(""));
export const finditer = (pattern, value) => [...value.matchAll(withFlags(pattern, "g"))];
export const findall = (pattern, value) => finditer(pattern, value).map((one) => one[1] ?? one[0]);

/** A lookup by name, with its `names` and their titles; answers are constructed on first use. */
export function stored(kind, answers) {
  const find = cached((name) => {
    if (!answers.has(name)) throw unknown(kind, name, answers.keys());
    return answers.get(name)();
  }, answers.size);
  return Object.assign(find, { names: () => [...answers.keys()] });
}
