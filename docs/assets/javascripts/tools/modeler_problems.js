// What cannot be read of the modeler's fields.

import { plainNumber } from "./quantities.js";

/** Problems of single fields, by key, with the changes that would mend them. */
export function fieldProblems() {
  const found = new Map();
  return {
    found,
    clear: () => found.clear(),
    set(key, message, offers = []) {
      if (message === null) found.delete(key);
      else found.set(key, { message, offers });
    },
    /** [problem, microbatches] of a global batch as typed; `share` sequences go to one microbatch of all replicas. */
    batch(typed, share) {
      const size = /^\d{1,9}$/.test(typed.trim()) ? Number(typed) : NaN;
      if (size >= share && size % share === 0) {
        found.delete("global_batch");
        return [false, size / share];
      }
      const below = Math.max(1, Math.floor((size || 0) / share));
      const offers = Number.isNaN(size)
        ? []
        : [...new Set([below, below + 1])].map((count) => ({ microbatches: count }));
      this.set(
        "global_batch",
        `Global batch: expected a multiple of ${plainNumber(share)} (DP times the sequences of a microbatch)`,
        offers.map((changes) => [`global batch ${plainNumber(changes.microbatches * share)}`, changes]),
      );
      return [true, null];
    },
  };
}
