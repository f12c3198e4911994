// Hatches that tell parts without a meaning of their own apart, as in the figures of the guide: the
// part's ink, with lines in the colour of the paper. The first part is plain.

import { svgEl } from "./dom.js";

const STEP = 7; // px between lines
const LINES = [
  [],
  [[0, STEP, STEP, 0], [-1, 1, 1, -1], [STEP - 1, STEP + 1, STEP + 1, STEP - 1]],
  [[0, 0, STEP, STEP], [-1, STEP - 1, 1, STEP + 1], [STEP - 1, -1, STEP + 1, 1]],
  [[STEP / 2, 0, STEP / 2, STEP]],
  [[0, STEP / 2, STEP, STEP / 2]],
  [[0, STEP, STEP, 0], [0, 0, STEP, STEP]],
  [[STEP / 2, 0, STEP / 2, STEP], [0, STEP / 2, STEP, STEP / 2]],
];

/** The patterns of a drawing, whose ids begin with `prefix`. */
export const hatches = (prefix) =>
  svgEl(
    "defs",
    {},
    LINES.map((lines, at) =>
      svgEl(
        "pattern",
        { id: `${prefix}-${at}`, width: STEP, height: STEP, patternUnits: "userSpaceOnUse" },
        lines.map(([x1, y1, x2, y2]) => svgEl("line", { class: "modeler-hatch", x1, y1, x2, y2 })),
      ),
    ),
  );

/** A box in a role's ink with hatch `at`; `children` are its title and the like. */
export const hatched = (prefix, at, role, { x, y, width, height }, ...children) =>
  svgEl(
    "g",
    {},
    ...children,
    svgEl("rect", { class: "modeler-solid", style: `fill:var(--fig-${role})`, x, y, width, height }),
    LINES[at].length ? svgEl("rect", { fill: `url(#${prefix}-${at})`, x, y, width, height }) : null,
  );

/** A patch for a legend. */
export const hatchedSwatch = (prefix, at, role) =>
  svgEl(
    "svg",
    { class: "modeler-patch", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" },
    hatched(prefix, at, role, { x: 0, y: 0, width: 14, height: 14 }),
  );
