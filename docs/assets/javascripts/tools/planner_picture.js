// Time against memory: the layouts, and the front that no layout beats.

import { svgEl } from "./dom.js";
import { label, picture, round, ticksTo } from "./drawing.js";
import { nameOf } from "./planner_table.js";
import { bytes, plainNumber, seconds } from "./quantities.js";

const [LEFT, RIGHT, TOP, BOTTOM] = [58, 14, 22, 40];

// 1, 2 and 5 of every power of ten, or finer steps if those are too few.
function factorTicks(low, high) {
  const found = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power < high; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power >= low && factor * power <= high) found.push(factor * power);
  }
  return found.length > 2 ? found : ticksTo(high, 6).filter((at) => at >= low);
}

/** The layouts and their front, each point of which is a link; time is on a logarithmic axis. */
export function frontPicture({ best, front, capacity_bytes: capacity, told }, width, linkOf) {
  const height = Math.round(Math.min(340, Math.max(240, width / 2.2)));
  const all = [...best, ...front];
  const times = all.map((one) => one.step_s);
  // Leaves space above and below on a logarithmic axis: the front begins with layouts ten times as slow.
  const [quick, slow] = [Math.min(...times) / 1.15, Math.max(...times) * 1.1];
  const full = Math.max(capacity ?? 0, ...all.map((one) => one.memory_bytes));
  const x = (held) => round(LEFT + (held / full) * (width - LEFT - RIGHT));
  const y = (time) => round(height - BOTTOM - (Math.log(time / quick) / Math.log(slow / quick)) * (height - TOP - BOTTOM));
  // One element for hundreds of dots, which are line caps of lines without length.
  const dots = svgEl("path", { class: "plan-dots", d: best.map((one) => `M${x(one.memory_bytes)} ${y(one.step_s)}h0`).join("") });
  const line = front.map((one, at) => `${at ? "L" : "M"}${x(one.memory_bytes)} ${y(one.step_s)}`).join("");
  const points = front.map((one) =>
    svgEl("a", { href: linkOf(one), "aria-label": `${nameOf(one)}, in the modeler` },
      svgEl("title", {}, `${seconds(one.step_s)} with ${bytes(one.memory_bytes)}: ${nameOf(one)}`),
      svgEl("circle", { class: "plan-target", cx: x(one.memory_bytes), cy: y(one.step_s), r: 9 }),
      svgEl("circle", { class: "plan-point", cx: x(one.memory_bytes), cy: y(one.step_s), r: 3.5 })));
  const across = ticksTo(full, width < 500 ? 3 : 6).map((at) => svgEl("g", {},
    svgEl("line", { class: "plan-grid", x1: x(at), x2: x(at), y1: TOP, y2: height - BOTTOM }),
    label(at ? bytes(at) : "0", x(at), height - BOTTOM + 15, { class: "modeler-muted", "text-anchor": "middle" })));
  const upwards = factorTicks(quick, slow).map((at) => svgEl("g", {},
    svgEl("line", { class: "plan-grid", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }),
    label(`${plainNumber(at)}\u00a0s`, LEFT - 6, y(at) + 4, { class: "modeler-muted", "text-anchor": "end" })));
  const said = `Time of a step against memory: ${front.length} layouts on the front, from ${seconds(front[0].step_s)} with ${bytes(front[0].memory_bytes)} to ${seconds(front.at(-1).step_s)} with ${bytes(front.at(-1).memory_bytes)}; ${told} are too close to the fastest to call.`;
  const drawn = picture(said, width, height, ...upwards, ...across,
    ...(capacity ? [svgEl("line", { class: "plan-capacity", x1: x(capacity), x2: x(capacity), y1: TOP, y2: height - BOTTOM }),
      label("capacity", x(capacity) - 5, TOP + 10, { class: "modeler-muted", "text-anchor": "end" })] : []),
    dots, svgEl("path", { class: "plan-line", d: line }), ...points,
    label("time of a step, log", 0, 12, { class: "modeler-muted" }),
    label("memory of the fullest GPU", width - RIGHT, height - 6, { class: "modeler-muted", "text-anchor": "end" }));
  drawn.setAttribute("role", "group"); // images cannot contain links
  return drawn;
}
