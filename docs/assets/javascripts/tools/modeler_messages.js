// Messages about the modeler's input: what is invalid, and valid alternatives.
// Loaded when there is one.

import { button, el, released } from "./dom.js";
import { changesText } from "./changes.js";
import { hosts_words } from "../models/machine/host_words.js";
import { plainNumber } from "./quantities.js";

/** Messages of the address, of the fields and of the engine. */
export function messages({ schema, found, refused, problems, bad, alone, apply, evaluate }) {
  const shown = [];
  const works = (state) => !evaluate(state).error;
  if (problems.length) {
    shown.push(
      message(
        "is-warning",
        "Part of the address can't be read, so defaults are used for it.",
        el(
          "ul",
          {},
          problems.map((text) => el("li", {}, text)),
        ),
      ),
    );
  }
  for (const [key, { message: text, offers }] of bad.found) {
    shown.push(
      message(
        "is-bad",
        key === "global_batch" && found?.setup ? `${text}; ${plainNumber(found.setup.global_batch)} is computed` : text,
        offers.length
          ? el(
              "div",
              { class: "tool-actions" },
              offers.map(([name, changes]) =>
                button(name, () => {
                  bad.clear();
                  apply(changes);
                }),
              ),
            )
          : null,
      ),
    );
  }
  for (const { error, state } of refused) {
    shown.push(
      message(
        "is-bad",
        `The address asks for something that can't be computed: ${sentence(error)} You see the first example instead.`,
        nearest(schema, { state, error }, works, (changes, next) => apply(next, 0)),
      ),
    );
  }
  if (found?.error) {
    shown.push(
      message(
        "is-bad",
        `${alone ? "B: " : ""}${sentence(found.error)} The results below are those of ${alone ? "A" : "the last configuration that fits"}.`,
        nearest(schema, found, works, (changes) => apply(changes)),
      ),
    );
  }
  if (found?.job) {
    const { state: { nodes, gpus }, setup: { parallel }, job: { chip } } = found;
    const text = hosts_words(nodes, gpus, parallel.nodes, chip);
    if (text) shown.push(message(parallel.nodes < nodes ? "is-plain" : "is-warning", `${text}.`));
  }
  return shown;
}

// Buttons for valid alternatives, which appear a moment after the message.
function nearest(schema, { state, error }, works, apply) {
  const box = el("div", { class: "tool-actions" });
  const offer = async () => {
    const { nearestValid } = await import("./fixes.js");
    const offers = nearestValid(schema, state, error, works);
    if (!offers.length) return;
    await released();
    box.append(
      el("span", {}, "Nearest that work:"),
      ...offers.map(({ changes, next }) => button(changesText(state, changes), () => apply(changes, next))),
    );
  };
  offer();
  return box;
}

const message = (kind, text, more) => el("div", { class: `tool-message ${kind}` }, el("p", {}, text), more);

// The engine's message without its suggestions, which become buttons.
function sentence({ what, expected, got }) {
  const wanted = expected === null ? "" : `: expected ${expected}`;
  const given = got === null || got === undefined ? "" : `, got ${typeof got === "number" ? plainNumber(got) : got}`;
  return `${what.replace("gpus_per_node", "GPUs per node")}${wanted}${given}.`;
}
