// Parts without a meaning of their own, in the ink of their role.

import { svgEl } from "./dom.js";

/** A box in a role's ink; `children` are its title and so on. */
export const inked = (role, { x, y, width, height }, ...children) =>
  svgEl("g", {}, ...children, svgEl("rect", { class: "modeler-solid", style: `fill:var(--fig-${role})`, x, y, width, height }));

/** A patch for a legend. */
export const inkedSwatch = (role) =>
  svgEl(
    "svg",
    { class: "modeler-patch", viewBox: "0 0 14 14", width: 14, height: 14, "aria-hidden": "true" },
    inked(role, { x: 0, y: 0, width: 14, height: 14 }),
  );
