// What the modules of the profile reader answer to the cases of test_profile_reader.py, as JSON.

import { InputError } from "./engine/errors.js";
import { endOf, traceText } from "./tools/profile_trace.js";
import { catalog } from "./catalog.js";
import { besideModel, modelled } from "./tools/profile_beside.js";
import { traceCommand } from "./tools/modeler_command.js";
import { fromQuery, schemaOf } from "./tools/modeler_state.js";
import { readFiles } from "./tools/profile_files.js";
import { profileText, snapshotText } from "./tools/profile_words.js";

const bytesOf = (written) => Uint8Array.from(atob(written), (one) => one.charCodeAt(0));
const fileOf = ([name, written]) => new File([bytesOf(written)], name);

async function read({ files, against = [], device = null }) {
  try {
    const { profile, snapshot } = await readFiles(files.map(fileOf), { against: against.map(fileOf), device });
    return {
      text: (profile ? profileText(profile.answer.text, profile.sections) : "") + (snapshot ? snapshotText(snapshot) : ""),
      data: profile ? profile.data : snapshot.data,
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

// A rank beside the model of a query of the modeler, whose command says it with the same options.
async function besides({ files, query }) {
  const { profile } = await readFiles(files.map(fileOf));
  const { setup, step, problems } = await modelled(`https://a.site/tools/modeler/?${query}#x`);
  const { section, data } = besideModel(profile.worst, step);
  const { a } = fromQuery(schemaOf(catalog), catalog, query);
  return {
    problems, model: setup.model, command: traceCommand(a, catalog),
    text: profileText(profile.answer.text, [...profile.sections, section]), data: { ...profile.data, model: data },
  };
}

// The events of a text that comes in pieces of `size` characters.
function cut([text, size]) {
  const trace = traceText("made", (value) => (Array.isArray(value) || typeof value !== "object" || !value ? value : new Map(Object.entries(value))));
  const found = [];
  for (let at = 0; at <= text.length + size && !trace.done; at += size) {
    trace.add(text.slice(at, at + size));
    for (const event of trace.read()) found.push(Object.fromEntries(event));
  }
  return found;
}

export const suites = {
  read: (cases) => Promise.all(cases.map(read)),
  besides: (cases) => Promise.all(cases.map(besides)),
  addresses: (texts) => Promise.all(texts.map(async (text) => (await modelled(text)).error?.message ?? "")),
  cut: (cases) => cases.map(cut),
  ends: (texts) => texts.map((text) => endOf(text, 0)),
};
