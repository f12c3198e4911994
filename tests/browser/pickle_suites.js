// What the reader of pickles says of the files of test_pickles.py: "read", or why not.

import { InputError } from "./engine/errors.js";
import { unpickled } from "./tools/profile_pickle.js";
import { read_model_text } from "./scenarios/architectures/file_text.js";
import { traceText } from "./tools/profile_trace.js";
import { mapped } from "./engine/records.js";

function said(read) {
  try {
    read();
    return "read";
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return error.message;
  }
}

export const suites = {
  pickles: (files) => files.map((hex) => said(() =>
    unpickled(Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16))))),
  long: (sizes) => sizes.map((size) => said(() => {
    const bytes = new Uint8Array(12 + size);
    bytes.set([0x80, 4, 0x8e]);
    new DataView(bytes.buffer).setUint32(3, size, true);
    bytes[11 + size] = 0x2e;
    return unpickled(bytes);
  })),
  configs: (texts) => texts.map((text) => said(() => read_model_text(text))),
  traces: (texts) => texts.map((text) => said(() => {
    const trace = traceText("t.json", mapped);
    if (text) trace.add(text);
    trace.add("");
    for (const _ of trace.read());
  })),
};
