// Records of the printed models from plain objects, and plain objects from what they answer.

/** A record of the fields in `given`; what is left out has its default. */
export const record = (cls, given) => new cls(...cls.prototype.$fields.map((name) => given[name]));

/** A dictionary of Python's, and those in it, as an object. */
export function plain(value) {
  if (value instanceof Map) return Object.fromEntries(Array.from(value, ([name, one]) => [name, plain(one)]));
  return Array.isArray(value) ? value.map(plain) : value;
}
