// A pickle of plain data, read without running anything: dicts become Maps, lists and tuples arrays.
// Anything that names a class or a function is refused, as by `figgen memory-snapshot`.
// Source: CPython, Lib/pickletools.py, opcodes of protocols 2 to 5.

import { InputError, grouped } from "../engine/errors.js";
import { ENDED, LONGEST, NAMED, NO_TEXT, PROTOCOLS, REFUSED_OPERATIONS, UNFIT, broken, refused } from "../models/memory/plain_pickle.js";

const MOST_STEPS = 50_000_000; // steps of a few bytes each could fill the memory
const MARK = Symbol("mark");

/** The content of a pickle. Throws InputError if it is broken, too large, or not plain data. */
export function unpickled(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const [stack, memo] = [[], []];
  let [at, steps] = [0, 0];

  const take = (count) => {
    if (count > bytes.length - at) throw broken(ENDED);
    if (count > LONGEST) throw broken(`a value of more than ${grouped(LONGEST)} bytes`);
    at += count;
    return at - count;
  };
  const u8 = () => bytes[take(1)];
  const u32 = () => view.getUint32(take(4), true);
  const u64 = () => {
    const size = Number(view.getBigUint64(take(8), true));
    if (size > bytes.length) throw broken(ENDED);
    return size;
  };
  const text = (size) => {
    const from = take(size);
    try {
      return decoder.decode(bytes.subarray(from, from + size));
    } catch {
      throw broken(NO_TEXT);
    }
  };
  const line = () => {
    const from = at;
    const end = bytes.indexOf(10, from);
    if (end < 0) throw broken(ENDED);
    at = end + 1;
    return String.fromCharCode(...bytes.subarray(from, Math.min(end, from + NAMED)));
  };
  const whole = (size) => {
    const from = take(size);
    let value = 0n;
    for (let i = Math.min(size, 64) - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[from + i]);
    return Number(size ? BigInt.asIntN(8 * size, value) : 0n);
  };
  const pop = () => {
    if (!stack.length || stack[stack.length - 1] === MARK) throw broken(UNFIT);
    return stack.pop();
  };
  const marked = () => {
    const from = stack.lastIndexOf(MARK);
    if (from < 0) throw broken(UNFIT);
    const found = stack.splice(from);
    found.shift();
    return found;
  };
  const into = (isKind) => {
    const found = stack[stack.length - 1];
    if (found === undefined || found === MARK || !isKind(found)) throw broken(UNFIT);
    return found;
  };
  const append = (values) => {
    if (!values.length) return void into(() => true);
    const list = into(Array.isArray);
    for (const value of values) list.push(value);
  };
  const fill = (pairs) => {
    if (!pairs.length) return void into(() => true);
    const dict = into((found) => found instanceof Map);
    if (pairs.length % 2) throw broken(UNFIT);
    for (let i = 0; i < pairs.length; i += 2) {
      if (pairs[i] instanceof Map || Array.isArray(pairs[i])) throw broken(UNFIT);
      dict.set(pairs[i], pairs[i + 1]);
    }
  };
  const tuple = (count) => {
    const found = Array.from({ length: count }, pop).reverse();
    stack.push(found);
  };
  const keep = (place) => {
    // A memo has at most as many entries as the file has bytes.
    const round = bytes.length < 2 ** 24 ? 2 ** 16 : 2 ** 24;
    if (Math.floor(place / round) > Math.floor(bytes.length / round)) throw broken("a memo index beyond what the file can fill");
    memo[place] = into(() => true);
  };
  const recall = (place) => {
    if (!(place in memo)) throw broken(UNFIT);
    stack.push(memo[place]);
  };
  const put = (value) => stack.push(value);

  const STEPS = {
    0x80: () => { if (u8() > PROTOCOLS) throw broken(`a protocol above ${PROTOCOLS}`); },
    0x95: () => { take(8); },
    0x28: () => put(MARK),
    0x30: () => { if (stack.pop() === undefined) throw broken(UNFIT); }, // also removes a mark
    0x31: marked,
    0x4e: () => put(null),
    0x88: () => put(true),
    0x89: () => put(false),
    0x4a: () => put(view.getInt32(take(4), true)),
    0x4b: () => put(u8()),
    0x4d: () => put(view.getUint16(take(2), true)),
    0x8a: () => put(whole(u8())),
    0x8b: () => put(whole(u32())),
    0x47: () => put(view.getFloat64(take(8))),
    0x8c: () => put(text(u8())),
    0x58: () => put(text(u32())),
    0x8d: () => put(text(u64())),
    0x43: () => put(bytes.subarray(take(u8()), at)),
    0x42: () => put(bytes.subarray(take(u32()), at)),
    0x8e: () => put(bytes.subarray(take(u64()), at)),
    0x5d: () => put([]),
    0x29: () => put([]),
    0x7d: () => put(new Map()),
    0x61: () => append([pop()]),
    0x65: () => append(marked()),
    0x73: () => fill([pop(), pop()].reverse()),
    0x75: () => fill(marked()),
    0x74: () => put(marked()),
    0x85: () => tuple(1),
    0x86: () => tuple(2),
    0x87: () => tuple(3),
    0x94: () => keep(memo.length),
    0x71: () => keep(u8()),
    0x72: () => keep(u32()),
    0x68: () => recall(u8()),
    0x6a: () => recall(u32()),
    // Opcodes that name something to call, in the order of a pickler.
    0x63: () => { throw refused(`${line()}.${line()}`); },
    0x69: () => { throw refused(`${line()}.${line()}`); },
    0x93: () => {
      const [name, module] = [pop(), pop()];
      if (typeof name !== "string" || typeof module !== "string") throw broken(UNFIT);
      throw refused([module, name].map((part) => part.slice(0, NAMED)).join("."));
    },
  };
  for (const [code, what] of REFUSED_OPERATIONS) STEPS[code] = () => { throw refused(what); };

  for (;;) {
    const code = u8();
    if (code === 0x2e) return pop();
    const step = STEPS[code];
    if (!step) throw broken(`operation 0x${code.toString(16).padStart(2, "0")}, which is not plain data of protocols 2 to 5`);
    if (++steps > MOST_STEPS) {
      const expected = `at most ${grouped(MOST_STEPS)} operations in a browser; figgen memory-snapshot reads more`;
      throw new InputError("snapshot", { expected, got: "more" });
    }
    step();
  }
}
