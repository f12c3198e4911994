// What the tools' worked lines say, as JSON.

import { workedLine } from "./engine/worked.js";

export const suites = {
  worked: async (given) => {
    const { notes } = await import("./formula-notes.js");
    return given.map(([name, values, spec]) => {
      const { text, result, symbols } = workedLine(notes, name, values, spec);
      return { text, result, symbols };
    });
  },
};
