// What the modules of the profile reader answer to the cases of test_profile_reader.py, as JSON.

import { InputError } from "./engine/errors.js";
import { endOf, traceReader } from "./engine/trace_reader.js";
import { catalog } from "./catalog.js";
import { slowest } from "./engine/profile.js";
import { beside, besideRows, modelled } from "./tools/profile_beside.js";
import { traceCommand } from "./tools/modeler_command.js";
import { fromQuery, schemaOf } from "./tools/modeler_state.js";
import { readFiles } from "./tools/profile_files.js";
import { profileData, profileText, snapshotText } from "./tools/profile_words.js";

let pages = null;
const bytesOf = (written) => Uint8Array.from(atob(written), (one) => one.charCodeAt(0));
const fileOf = ([name, written]) => new File([bytesOf(written)], name);

async function read({ files, device = null }) {
  try {
    const { profile, snapshot } = await readFiles(files.map(fileOf), { device });
    return {
      text: (profile ? profileText(profile) : "") + (snapshot ? snapshotText(snapshot) : ""),
      data: profile ? profileData(profile) : { device: snapshot.device, state: snapshot.state, peak: snapshot.peak },
    };
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message };
  }
}

// A rank beside the model of a query of the modeler, whose command says it with the same options.
async function besides({ files, query }) {
  const { profile } = await readFiles(files.map(fileOf));
  const worst = slowest(profile.ranks);
  const { setup, step, problems } = modelled(`https://a.site/tools/modeler/?${query}#x`);
  const rows = beside(worst, step, pages);
  const { a } = fromQuery(schemaOf(catalog), catalog, query);
  return {
    problems, model: setup.model, command: traceCommand(a, catalog),
    text: profileText(profile, besideRows(worst, rows)), data: profileData(profile, rows),
  };
}

// The events of a text that comes in pieces of `size` characters.
function cut([text, size]) {
  const found = [];
  const reader = traceReader("made", (_, event) => found.push(event));
  for (let at = 0; at < text.length && !reader.done; at += size) reader.push(text.slice(at, at + size));
  reader.end();
  return found;
}

export const suites = {
  read: (cases) => Promise.all(cases.map(read)),
  besides: ({ cases, pages: given }) => {
    pages = given;
    return Promise.all(cases.map(besides));
  },
  cut: (cases) => cases.map(cut),
  ends: (texts) => texts.map((text) => endOf(text, 0)),
};
