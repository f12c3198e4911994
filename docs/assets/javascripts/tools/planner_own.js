// What a reader pastes or loads becomes an own shape, or rates in the place of datasheets. Loaded
// then, as a part of the planner: the modeler's would bring the modeler along, with errors of its own.

import { ownOfText } from "./config_json.js";
import { measuredChanges } from "./measured_file.js";

/** What of the state follows from a text, by what the text is. */
export const read = {
  config: ownOfText,
  measured: measuredChanges,
};
