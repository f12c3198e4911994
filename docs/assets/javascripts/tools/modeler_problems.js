// Invalid text in the modeler's fields.

import { plainNumber } from "./quantities.js";

/** Problems of single fields, by key, with the changes that would fix them. */
export function fieldProblems() {
  const found = new Map();
  return {
    found,
    clear: () => found.clear(),
    set(key, message, offers = []) {
      if (message) found.set(key, { message, offers });
      else found.delete(key);
    },
    /** The microbatches of a global batch, or null; `share` sequences go to one microbatch of all replicas. */
    batch(size, share) {
      found.delete("global_batch");
      if (size % share === 0) return size / share;
      const below = Math.floor(size / share);
      this.set(
        "global_batch",
        `Global batch: expected a multiple of ${plainNumber(share)} (DP × sequences of a microbatch), not ${plainNumber(size)}`,
        [below, below + 1].filter(Boolean).map((count) => [`global batch ${plainNumber(count * share)}`, { global_batch: count * share }]),
      );
      return null;
    },
  };
}
