// What a number of the journey opens to on the reader's cluster.

import { followed } from "../equations/call_data.js";
import { shown } from "../quantity_shown.js";
import { opened, written } from "../scenarios/stories/opened.js";
import { el } from "./dom.js";
import { compute, data, keep } from "./journey_values.js";

const LARGEST = 3; // parts that are shown in full
const asked = new WeakMap(); // popover → its number, as an element
let now = null; // the journey on the reader's cluster

/** Opens every number of `root` to its derivation on a cluster, or for null to the original one. */
export function deriveAll(root, found) {
  now = found;
  for (const value of root.querySelectorAll("button[popovertarget] > data[data-follows]")) {
    const how = document.getElementById(value.parentElement.getAttribute("popovertarget"));
    if (how && !value.closest("figure")) asked.set(how, value);
  }
  for (const how of root.querySelectorAll(".fig-how")) {
    how.querySelector(":scope > .fig-reference")?.remove();
    if (found && !asked.has(how)) how.prepend(el("p", { class: "fig-reference" }, "Computed for the reference machine:"));
  }
}

addEventListener("beforetoggle", ({ target, newState }) => {
  if (newState !== "open" || !asked.has(target)) return;
  const own = keep(target, [...target.childNodes]);
  target.replaceChildren(...((now && derived(own, asked.get(target))) || own));
}, true);

// The lines of a popover; null if the cluster has no such number.
function derived(own, value) {
  const call = data(value.dataset.follows);
  const [unit, ...spec] = value.dataset.spec.split(" ");
  const number = followed(call, compute, now.lookUp);
  if (Number.isNaN(number)) return null;
  const lines = call.length === 2 ? ofFormula(own, call) : ofJob(own, call);
  return [el("p", {}, el("strong", {}, shown(number, unit, spec.join(" "))), ", on your cluster"), ...lines, own.at(-1).cloneNode(true)];
}

function ofFormula(own, [, given]) {
  const put = [...given].map(([name, one]) => `${name} = ${written(name, followed(one, compute, now.lookUp))}`);
  return [...own.slice(1, 3).map((line) => line.cloneNode(true)), el("p", {}, `With ${put.join(", ")}.`)];
}

function ofJob(own, [name, given, field]) {
  const found = opened(now.functions[name](...given), field);
  if (!found) return own.slice(1, -1).map((line) => line.cloneNode(true));
  const size = ({ value, unit }) => shown(value, unit, unit === "s" ? "time" : "bytes");
  const rest = found.parts.slice(LARGEST);
  const items = found.parts.slice(0, LARGEST).map((part) => el("li", {}, `${part.name}: ${size(part)} = ${part.how} (${part.source})`));
  if (rest.length) items.push(el("li", {}, `smaller: ${rest.map((part) => `${part.name} ${size(part)}`).join(", ")}`));
  return [
    el("p", {}, found.formula),
    ...(found.worked ? [el("p", {}, `= ${found.worked}`)] : []),
    ...(items.length ? [el("ul", {}, items)] : []),
  ];
}
