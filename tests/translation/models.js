// Reads records that Python wrote, asks the printed models, and compares every number to the bit.

import fs from "node:fs";


const loaded = new Map();
async function module(name) {
  if (!loaded.has(name)) {
    const path = name.replace(/^figgen\./, "").replaceAll(".", "/");
    loaded.set(name, await import(`./assets/javascripts/${path}.js`));
  }
  return loaded.get(name);
}

async function read(value) {
  if (Array.isArray(value)) return Promise.all(value.map(read));
  if (!value || typeof value !== "object") return value;
  if (value.set) return new Set(value.set);
  const [where, name] = value.record;
  const made = (await module(where))[name];
  return new made(...(await read(value.fields)));
}

function shown(value) {
  if (value instanceof Map) return [...value].map(shown);
  if (value instanceof Set) return [...value].map(shown).map(String).sort();
  if (Array.isArray(value)) return value.map(shown);
  if (value && typeof value === "object") {
    return Object.fromEntries(value.$fields.filter((name) => name !== "setup").map((name) => [name, shown(value[name])]));
  }
  return typeof value === "boolean" ? Number(value) : value;
}

let numbers = 0;
function differing(got, wanted, path) {
  if (wanted && typeof wanted === "object") {
    const names = [...new Set([...Object.keys(wanted), ...Object.keys(got ?? {})])];
    return names.flatMap((name) => differing(got?.[name], wanted[name], `${path}.${name}`));
  }
  if (typeof wanted === "number") numbers += 1;
  const same = (got ?? null) === (typeof wanted === "boolean" ? Number(wanted) : wanted);
  return same ? [] : [[path, got ?? null, wanted]];
}

const { step } = await module("figgen.models.step.step");
const { memory } = await module("figgen.models.memory.memory");
const { step_timeline } = await module("figgen.models.step.step_timeline");
const wrong = [];
for (const one of JSON.parse(fs.readFileSync("data.json", "utf8"))) {
  const [setup, cluster] = [await read(one.setup), await read(one.cluster)];
  const answers = { step: step(setup, cluster, one.share), memory: memory(setup, one.capacity_bytes) };
  if (one.timeline) answers.timeline = step_timeline(setup, cluster, one.share);
  for (const name in answers) {
    const found = differing(shown(answers[name]), one[name], name);
    if (found.length) wrong.push([one.choices, found.length, found.slice(0, 3)]);
  }
}
console.log(JSON.stringify({ numbers, wrong: wrong.slice(0, 5), count: wrong.length }));
