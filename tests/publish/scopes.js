// Names in scopes of every kind; the program prints what they mean.
const told = [];
const value = "outer", other = 2;
function first(value, { other, deep: [third = value, ...rest] = [other] } = {}, again = () => value) {
  { const value = "block"; told.push(value, other, third, rest.length, again()); }
  for (const value of [1]) told.push(value);
  for (let value = 0; value < 1; value++) told.push(value);
  try { throw value; } catch (other) { told.push(other); }
  switch (value) { case "a": { let value = 3; told.push(value); break; } default: told.push("none"); }
  return value;
}
told.push(first("a", { other: 5 }), first("b", { other: 6, deep: [7, 8] }));
const named = function inner(count) { return count ? inner(count - 1) : typeof inner; };
const Known = class Own { static made() { return new Own().value; } value = value; #other = other; get seen() { return this.#other; } has(one) { return #other in one; } };
told.push(named(2), Known.made(), new Known().seen, new Known().has(new Known()));
const key = "x", shown = { value, other, [key]: value, get key() { return key; }, async *many() { yield value; }, async() { return 1; }, static: 2, of: 3 };
told.push(Object.keys(shown).join(), shown.key, shown.async.length, shown.of / 2 / 1, shown?.value?.length ?? 0);
let a, b, of = 4;
({ value: a, other: b = value } = shown);
[a, b] = [b, a];
told.push(a, b, of, `${value} ${`${other}${{ value }.value}`} }`, /[/}]value/.test("/value"), -(-other), other ? value : (value) => value);
const nested = (value) => (other) => ({ value, other, both: value ? (b) => b + value : other });
told.push(JSON.stringify(nested(1)(2)), nested(1)(2).both(3));
outer: for (const value of [1, 2, 3]) { for (const other of [1, 2]) { if (value * other === 4) break outer; if (other === 2) continue outer; told.push(value * other); } }
const together = (...values) => values.reduce((sum, value) => sum + value, 0), tag = (parts, ...values) => parts.join("|") + values;
told.push(together(...[1, 2]), tag`a${other}b${value}`, (() => { do { other; } while (false); return void 0 ?? "end"; })());
function* counting(value) { const given = yield value; yield* [given, other]; }
const counts = counting(9); told.push(counts.next().value, counts.next("in").value, counts.next().value);
for await (const value of shown.many()) told.push(value);
for (const value in { kept: 1 }) told.push(value);
for (const { value: [other] } of [{ value: ["taken"] }]) told.push(other);
told.push((function () { return new.target === undefined; })(), async function () { await value; }.length, (async (value) => value).length);
class Begun { static first = value; static { const value = "static"; told.push(value, Begun.first, other); } }
told.push(+{ valueOf() { return other; } } / 2);
console.log(JSON.stringify(told));
