// Reads a model's own file, config.json. The modeler loads it when there is one.

import { read_model_text } from "../scenarios/architectures/file_text.js";

/** What `figgen take` prints of a `config.json`, which only has a shape. Throws InputError. */
export function modelFile(text) {
  const [shape, notes] = read_model_text(text);
  return { dialect: "config.json", taken: {}, assumed: {}, because: {}, usual: [], left: [], unsure: [], asked: [], missing: [], notes, shape };
}
