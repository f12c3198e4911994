// Evaluates a model for many layouts, one after another: figgen.equations.columns for a page.

/** Evaluates a model of three records for all combinations; returns a column per result, third fastest. */
export function over(first, second, third, model) {
  const count = first.length * second.length * third.length;
  let columns = null, at = 0;
  for (const one of first) for (const other of second) for (const last of third) {
    const numbers = model(one, other, last);
    columns ??= numbers.map(() => new Float64Array(count));
    for (let which = 0; which < numbers.length; which++) columns[which][at] = numbers[which];
    at++;
  }
  return columns;
}

export const at = (table, place) => table[place];
export const crossed = (table, row, place) => table[row][place];
export const listed = crossed;

export function chosen(column, places) {
  const found = new Float64Array(places.length);
  for (let at = 0; at < places.length; at++) found[at] = column[places[at]];
  return found;
}
export function equal_to(column, value) {
  let count = 0, at = 0;
  for (const one of column) if (one === value) count++;
  const places = new Int32Array(count);
  for (let place = 0; at < count; place++) if (column[place] === value) places[at++] = place;
  return places;
}
/** The indices of a column's numbers that are above `low` and at most `high`. */
export function between(column, low, high) {
  const places = [];
  for (let at = 0; at < column.length; at++) if (column[at] > low && column[at] <= high) places.push(at);
  return places;
}
export const most = (column) => column.reduce((high, one) => Math.max(high, one), -Infinity);
export const least = (column) => column.reduce((low, one) => Math.min(low, one), Infinity);
export function joined(columns) {
  const whole = new Float64Array(columns.reduce((count, one) => count + one.length, 0));
  let at = 0;
  for (const one of columns) {
    whole.set(one, at);
    at += one.length;
  }
  return whole;
}
export const filled = (count, value) => new Float64Array(count).fill(value);
export function order_of(column, ties) {
  const places = new Int32Array(column.length);
  for (let place = 0; place < places.length; place++) places[place] = place;
  return places.sort((one, other) => column[one] - column[other] || ties[one] - ties[other] || one - other);
}

/** The index of each number's first occurrence, ascending, and the number's count. */
export function firsts(column) {
  const found = new Map();
  column.forEach((number, place) => {
    if (!found.has(number)) found.set(number, { place, count: 0 });
    found.get(number).count++;
  });
  const each = [...found.values()];
  return [each.map(({ place }) => place), each.map(({ count }) => count)];
}
