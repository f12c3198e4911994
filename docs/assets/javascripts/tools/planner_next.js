// What a reader does with the fastest layout, beside the answer. Loaded with the first answer.

import { button, el } from "./dom.js";
import { download } from "./files.js";

const traces = () => import("./planner_trace.js");

/** Fills `box`; returns { show(ways) } for the queries of the fastest layout's modeler and map, or null for none. */
export function nextSteps(box, catalog, say) {
  let [now, start] = [null, null]; // `start` writes the file that starts the layout
  const opened = [["modeler", "Open in the modeler"], ["map", "Show its ranks"]].map(([tool, text]) => [tool, el("a", { class: "tool-button" }, text)]);
  const written = el("div");
  const actions = el("div", { class: "tool-actions", role: "group", "aria-label": "With the fastest layout" },
    opened.map(([, link]) => link),
    button("Write its launch file", async () => {
      const asked = now;
      const { jobOfQuery, writeBox } = await traces();
      if (asked !== now) return;
      start ??= writeBox(say);
      start.update(jobOfQuery(catalog, now.modeler));
      written.replaceChildren(start.element);
    }, { "data-write": "" }),
    button("Save it as a trace", async () => {
      const asked = now.modeler;
      const { traceOfQuery } = await traces();
      download("trace.json", traceOfQuery(catalog, asked), "application/json");
    }, { "data-file": "trace" }),
    button("Is my number good?", () => location.assign(`../modeler/?${now.modeler}#is-my-number-good`)));
  box.append(actions, written);
  return {
    show(ways) {
      now = ways;
      written.replaceChildren(); // it was of a different search
      actions.classList.toggle("is-idle", !ways);
      for (const [tool, link] of ways ? opened : []) link.href = `../${tool === "map" ? "rank-map" : tool}/?${ways[tool]}`;
    },
  };
}
