// What the modules of the modeler answer to the cases of test_modeler_model.py, as JSON.

import { transfersOf } from "./tools/modeler_traffic.js";
import * as advice from "./tools/advice.js";
import { read_model_text } from "./scenarios/architectures/file_text.js";
import { modelFile } from "./tools/model_file.js";
import { takeJob } from "./tools/modeler_taken.js";
import { ownOf, ownShape } from "./tools/modeler_own.js";
import { InputError } from "./engine/errors.js";
import { jobOf } from "./engine/job.js";
import { mapped, plain } from "./engine/records.js";
import { page_answers } from "./scenarios/tools/page_answers.js";
import { served_shape } from "./scenarios/tools/served_shape.js";
import { parameter_counts } from "./models/shape/transformer.js";
import { changesText } from "./tools/changes.js";
import { nearestValid } from "./tools/fixes.js";
import { communicationCsv, memoryCsv } from "./tools/modeler_files.js";
import { MEASURES } from "./tools/modeler_measures.js";
import { evaluate, mfuOf, partsOf } from "./tools/modeler_model.js";
import { howOf } from "./tools/modeler_how.js";
import { commandOf, hasOwnNumbers } from "./tools/modeler_command.js";
import { sequenceIn } from "./tools/modeler_options.js";
import { addressKinds, fromQuery, presetsOf, queryOf, schemaOf } from "./tools/modeler_state.js";
import { readAddress } from "./tools/state.js";
import { notes } from "./formula-notes.js";

let catalog = null;
let schema = null;

async function ready() {
  catalog ??= await (await fetch("catalog.json")).json();
  schema ??= schemaOf(catalog);
}

const run = (state, base) => evaluate(catalog, state, base);

/** What an address becomes: states, problems, the address again, what the engine says. */
async function addresses(queries) {
  await ready();
  return Promise.all(queries.map(async (query) => {
    const { a, b, problems } = await readAddress(query, addressKinds(schema), (given) => fromQuery(schema, catalog, given), sequenceIn(catalog));
    const again = queryOf(schema, catalog, a, b);
    const read = fromQuery(schema, catalog, again);
    const found = run(a);
    const offers = found.error ? nearestValid(schema, a, found.error, (state) => !run(state).error) : [];
    return {
      a, b, problems, again, stable: JSON.stringify([read.a, read.b]) === JSON.stringify([a, b]),
      error: found.error?.message ?? null,
      offers: offers.map(({ changes, next }) => ({ text: changesText(a, changes), error: run(next).error?.message ?? null })),
    };
  }));
}

/** Everything that a configuration answers, and the command line that asks the same. */
async function answers(queries) {
  await ready();
  return queries.map((query) => {
    const { a } = fromQuery(schema, catalog, query);
    const found = run(a);
    const sum = (values) => values.reduce((total, value) => total + value, 0);
    return {
      step: found.step, memory: found.memory, pipeline: found.pipeline,
      commands: ["step", "memory"].map((verb) => commandOf(verb, a, catalog)), own: hasOwnNumbers(a),
      parts: sum(partsOf(found).map(({ seconds }) => seconds)), sent: sum(transfersOf(found).map(({ bytes }) => bytes)),
      mfu: mfuOf(found), csv: [communicationCsv(found), memoryCsv(found)],
    };
  });
}

/** Recommendations and sensitivities of a configuration. */
async function advised(queries) {
  await ready();
  return queries.map((query) => {
    const now = run(fromQuery(schema, catalog, query).a);
    const tried = [...advice.candidatesOf(now), ...advice.pairsOf(now)].map((one) => ({ ...one, found: run({ ...now.state, ...one.changes }, now.job) }));
    const units = advice.unitsOf(now, catalog).flatMap(({ tries, name }) => {
      const changes = tries.find((one) => !run({ ...now.state, ...one }, now.job).error);
      if (!changes) return [];
      const found = run({ ...now.state, ...changes }, now.job);
      return [{ name: name(changes), batch: found.setup.global_batch, ...advice.bought(now, found) }];
    });
    return {
      tips: advice.recommend(now, tried).map(({ text, reasons, gain, fits, same, changes, found }) => ({
        text, gain, fits, same, changes, batch: found.setup.global_batch,
        reasons: reasons.map(({ name, before, after, how }) => (how ? `${name} ${before} → ${after}` : name)),
      })),
      units, least: advice.leastMicrobatches(now.pipeline), fits: now.memory.fits, batch: now.setup.global_batch,
    };
  });
}

/** The worked lines of every number that the page can show, by key. */
async function worked(queries) {
  await ready();
  return queries.map((query) => {
    const found = run(fromQuery(schema, catalog, query).a);
    const { step, memory } = found;
    const each = (names, of) => names.flatMap((name) => of.map((one) => `${name}:${one}`));
    const transfers = transfersOf(found).map(({ axis, level }) => `${axis}:${level}`);
    const ranks = memory.ranks.map(({ pipeline_rank }) => pipeline_rank);
    const conventions = Object.keys(step.utilisation).filter((name) => step.utilisation[name] !== null);
    const keys = ["step", "throughput", "compute", "computing", "recompute", "bubble", "fraction", "overhead", "efficiency",
      "batch", "free", "fullest", "exposed", "operations", "sent", "peak", "capacity", "world",
      ...each(["exposed", "hidden"], Object.keys(step.exposed_s)), ...each(["mfu"], conventions),
      ...each(["share"], partsOf(found).map(({ key }) => key)),
      ...each(["row", "waited", "sent", "size", "calls", "buffer"], [...step.communication.keys()]),
      ...each(["transfer", "taking", "waiting"], transfers),
      ...each(["needed", "waits", "ridge", "ccr", "attainable", "load", "bandwidth"], step.levels.map(({ level }) => level)),
      ...each(["memory", "layers", "parameters", "inflight"], ranks),
      ...memory.ranks.flatMap(({ pipeline_rank: rank, bytes }) => Object.keys(bytes).map((part) => `memory:${rank}:${part}`)),
      ...(found.setup.recipe.iterations ? ["update", "updateshare"] : []),
      ...(step.gradient_buckets ? ["buckets", "bestbuckets"] : []), ...(found.setup.shape.latent ? [] : ["keys"]),
      ...each(["change"], Object.keys(MEASURES))];
    found.before = run({ ...found.state, efficiency: 0.8 * found.job.compute_efficiency });
    return Object.fromEntries(keys.map((key) => [key, howOf(key, found, notes)]));
  });
}

/** Every key of an address that is a choice, with all that it may be. */
const options = async () => {
  await ready();
  const found = Object.entries(schema).filter(([, kind]) => kind.choices).map(([key, kind]) => [key, kind.choices]);
  const texts = catalog.options.filter(({ kind, choices }) => kind === "text" && choices);
  const offered = texts.map(({ key, choices }) => [key, choices.map(([name]) => name)]);
  return Object.fromEntries([...found, ...offered]);
};

/** The shapes and parameters of config.json files, or why they are refused; and the state they become. */
const configs = async (texts) => {
  await ready();
  return texts.map((text) => {
    try {
      const [shape] = read_model_text(text);
      const again = served_shape(mapped(ownShape({ ...fromQuery(schema, catalog, "").a, ...ownOf(shape), sequence: shape.sequence })));
      const { total, active } = parameter_counts(again);
      return { parameters: { total, active }, windows: [again.window, again.full_every], again: again.key === shape.key };
    } catch (error) {
      return { error: error.message };
    }
  });
};

/** What texts that a reader brings make of the first configuration. */
const taken = async (texts) => {
  await ready();
  const { a } = fromQuery(schema, catalog, "");
  return texts.map((text) => {
    try {
      const { changes, found, problems } = takeJob(catalog, a, text, {}, modelFile);
      return { state: changes, dialect: found.dialect, asked: found.asked, problems, query: changes && queryOf(schema, catalog, { ...a, ...changes }) };
    } catch (error) {
      return { error: error.message };
    }
  });
};

// What is neither refused in words nor answered in finite numbers; and how many values are each.
const WEIRD = [0, -1, 1.5, 1e300, 1e-300, 2 ** 20, 2 ** 53, "8", "", "x", "__proto__", "constructor"];

function hostileTo(base) {
  const found = { answered: 0, refused: 0, wrong: [] };
  const kinds = Object.fromEntries(catalog.options.map(({ name, kind }) => [name, kind]));
  const numbers = ["whole", "number", "quantity"];
  for (const { name, default: usual } of catalog.options) for (const value of WEIRD) {
    // Fields and addresses have read a number or a text by the option's kind.
    if (kinds[name] === "switch" || kinds[name] === "counts" || numbers.includes(kinds[name]) !== (typeof value === "number")) continue;
    try {
      JSON.stringify(plain(page_answers(jobOf(catalog, { ...base, [name]: value }))), (_, shown) => {
        if (typeof shown === "number" && !Number.isFinite(shown)) throw new Error("not finite");
        return shown;
      });
      found.answered += 1;
      if (typeof value === "string" && usual !== value) found.wrong.push([name, value, "accepted"]);
    } catch (error) {
      if (error instanceof InputError) found.refused += 1;
      else found.wrong.push([name, String(value), error.message]);
    }
  }
  return found;
}

const hostile = async (bases) => {
  await ready();
  return bases.map(hostileTo);
};

/** The names of all presets that say a layout. */
const presets = async () => {
  await ready();
  return presetsOf(catalog).map(({ name, kind }) => [name, kind]);
};

/** The verdict on what was measured of a configuration, and the command line of the same job. */
async function verdicts(cases) {
  await ready();
  const { ofLog, verdictOf } = await import("./tools/modeler_verdict.js");
  return cases.map(([query, text]) => {
    const { a } = fromQuery(schema, catalog, query);
    return { command: commandOf("step", a, catalog), ...verdictOf(catalog, ofLog((changes) => run({ ...a, factor: null, ...changes }), text).found, text) };
  });
}

export const suites = { verdicts, configs, taken, options, addresses, answers, advised, worked, presets, hostile };
