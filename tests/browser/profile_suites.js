// What the modules of the profile reader answer to the cases of test_profile_reader.py, as JSON.

import { InputError } from "./engine/errors.js";
import { endOf, traceReader } from "./engine/trace_reader.js";
import { readFiles } from "./tools/profile_files.js";
import { profileData, profileText, snapshotText } from "./tools/profile_words.js";

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
  cut: (cases) => cases.map(cut),
  ends: (texts) => texts.map((text) => endOf(text, 0)),
};
