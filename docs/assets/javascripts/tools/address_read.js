// Sorts an address that has keys its tool lacks, or numbers as people type them. Loaded when there is one.
// A job travels in the modeler's keys: bare, as the modeler and the planner write them, or carried by
// tools whose own keys have other meanings.

import { InputError, closest, repr } from "../engine/errors.js";
import { jobIn } from "./job_carried.js";
import { CARRIED } from "./job_record.js";

/** Keys of the schedule lab, the rank map and the converter that say nothing of a job. */
export const VIEWS = [
  ..."a b c stages forward inputs weights message pair memory strips path moves".split(" "),
  ..."rank group moved".split(" "),
  ..."collective ranks bytes known time algbw busbw width ports line link ways zeros".split(" "),
];

const LONGEST = 80; // most characters of a plausible number
const SHOWN = 40; // most characters of an unknown key that a message repeats

// The second of two configurations has keys after "b.".
const nameOf = (key) => key.replace(/^b\./, "");

/**
 * `query`, with the tool's keys and numbers in plain digits; `job`, the keys of a job that the tool lacks;
 * `problems`, what is left out and what looks like a typo. Keys that no tool has are ignored. A tool that
 * has models takes a whole job; a tool without nodes uses the keys of a job with other meanings.
 */
export async function sorted(address, kinds, sequenceOf) {
  const has = (key) => Object.hasOwn(kinds, key);
  const isOwn = (key) => has(key) || (has("compare") && key.startsWith("b.") && has(nameOf(key)));
  const [isWhole, isApart] = [has("model"), !has("nodes")];
  const bare = [...new URLSearchParams(address)].filter(([key]) => !key.startsWith(CARRIED));
  const carried = [...jobIn(address, true)];
  let given = isApart ? bare : [...jobIn(address)];
  let job = new URLSearchParams(isApart ? carried : []);
  const isCarried = (key) => !isWhole && !isApart && carried.some(([name]) => name === key);
  const isStrange = ([key]) => !isOwn(key) && !isCarried(key);
  const { KEYS, FORMER, recordOf } = given.some(isStrange) ? await import("./address_job.js") : {};
  const [problems, left] = [[], new Set()];
  let isBare = false;
  for (const [key, value] of given) {
    if (isOwn(key)) continue;
    if (isCarried(key)) job.append(key, value);
    else if (KEYS.has(nameOf(key))) {
      if (!isWhole) job.append(key, value);
      else if (!FORMER.has(nameOf(key))) left.add(key);
      isBare = true;
    } else if (VIEWS.includes(key)) left.add(key);
    else {
      const nearest = closest(nameOf(key), Object.keys(kinds), 1);
      if (nearest.length) problems.push(new InputError(`unknown key ${repr(key.slice(0, SHOWN))}`, { nearest }).message);
    }
  }
  if (isBare && !isWhole) {
    const isOfJob = ([key]) => KEYS.has(nameOf(key));
    const found = await recordOf(new URLSearchParams([...(isApart ? carried : []), ...given.filter(isOfJob)]));
    problems.push(...found.problems);
    job = new URLSearchParams([...found.job].filter(([key]) => isApart || !has(key)));
    if (isApart) given = given.filter((pair) => !isOfJob(pair));
  }
  // A preset of the rank map is also one of other options.
  const preset = given.find(([key]) => key === "preset");
  if (!isApart && job.size && preset) job.append(...preset);
  if (left.size) problems.push(`${[...left].map((key) => key.slice(0, SHOWN)).join(", ")} ${left.size > 1 ? "are" : "is"} left out`);
  return { query: await plain(new URLSearchParams(given), kinds, sequenceOf), job, problems };
}

// Numbers in plain digits if they can be parsed; the tool checks the rest.
async function plain(asked, kinds, sequenceOf) {
  const kindOf = (key) => (Object.hasOwn(kinds, nameOf(key)) ? kinds[nameOf(key)] : {});
  const isOdd = ([key, text]) => kindOf(key).ends && text.trim() && text.length <= LONGEST
    && asked.getAll(key).length === 1 && kindOf(key).read(text) === undefined;
  // A batch in tokens requires the sequence length, which may also be changed here.
  const isBatch = (key) => nameOf(key) === "global_batch";
  const odd = [...asked].filter(isOdd).sort(([one], [other]) => isBatch(one) - isBatch(other));
  const { typedNumber } = odd.length ? await import("./typed.js") : {};
  for (const [key, text] of odd) {
    const batch = isBatch(key) && sequenceOf ? { sequence: sequenceOf(asked), share: 1 } : null;
    const { value } = typedNumber(nameOf(key), kindOf(key), text, batch);
    if (value !== undefined) asked.set(key, String(value));
  }
  return asked.toString();
}
