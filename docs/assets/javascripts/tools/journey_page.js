// Recomputes a page of the journey in place: its numbers, claims and charts; and restores it.

import { all_hold, followed, looked_up } from "../equations/call_data.js";
import { shown } from "../quantity_shown.js";
import { el } from "./dom.js";
import { CHARTS, drawn } from "./journey_charts.js";
import { deriveAll } from "./journey_derived.js";
import { compute, data, keep, was } from "./journey_values.js";
import { mapped } from "../engine/records.js";

// A number, or a text of a chart, as the page writes it; null restores the original.
function put(element, found) {
  const before = keep(element, element.textContent);
  const [unit, ...spec] = element.dataset.spec.split(" ");
  const known = found !== null && found !== undefined && !Number.isNaN(found);
  const text = !known ? before : typeof found === "string" ? found : shown(found, unit, spec.join(" "));
  if (element.textContent !== text) element.textContent = text;
  element.classList.toggle("is-yours", known);
}

// One wording of a claim; the other is kept in its template.
function say(claim, first) {
  const template = claim.querySelector(":scope > template");
  const [own, other] = keep(claim, [[...claim.childNodes].filter((node) => node !== template), [...template.content.cloneNode(true).childNodes]]);
  const wanted = first ? own : other;
  if (wanted[0]?.parentNode !== claim) claim.replaceChildren(...wanted, template);
  claim.classList.toggle("is-turned", !first);
}

function restore(element) {
  if (!was.has(element)) return;
  element.textContent = was.get(element);
  element.classList.remove("is-yours");
}

const pictureOf = (figure) => figure.querySelector(":scope > :is(.fig-picture, .fig-scroll)");

function chart(figure, found, catalog) {
  figure.querySelector(":scope > .fig-yours")?.remove();
  const make = found && CHARTS[figure.dataset.chart];
  const made = make ? make(found, JSON.parse(figure.dataset.given), catalog) : null;
  const picture = pictureOf(figure);
  if (picture) picture.hidden = Boolean(made);
  if (made) figure.prepend(drawn(made));
  for (const value of figure.querySelectorAll("figcaption data[data-follows]")) {
    if (made) put(value, made.values[value.dataset.follows] ?? null);
    else restore(value);
  }
  return Boolean(made);
}

const plainly = (key, value) => (value instanceof Map ? Object.fromEntries(value) : value);

// A question is graded by the number in its fold; a verdict on a previous number is removed.
function ask(form, found) {
  const call = mapped(JSON.parse(form.dataset.ask).follows);
  if (call === undefined) return;
  const known = found !== null && !Number.isNaN(followed(call, compute, found.lookUp));
  if (known) form.dataset.yours = JSON.stringify(looked_up(call, compute, found.lookUp), plainly);
  else delete form.dataset.yours;
  form.querySelector(".fig-reference")?.remove();
  if (known) form.querySelector("label > span").append(el("span", { class: "fig-reference" }, " On your cluster."));
  form.querySelector(".fig-verdict").textContent = "";
}

// Figures of ideas don't depend on a machine.
const tells = ({ dataset }) => "chart" in dataset || "reference" in dataset;

function note(figure, text) {
  const told = figure.querySelector(".fig-reference");
  if (!text) told?.remove();
  else if (!told) figure.querySelector("figcaption")?.append(el("span", { class: "fig-reference" }, ` ${text}`));
}

/**
 * Shows `root`, a page's content, for a journey on a cluster, or for null as published:
 * { values, claims, turned, charts } of what followed.
 */
export function showJourney(root, found, catalog) {
  const counts = { values: 0, claims: 0, turned: 0, charts: 0 };
  for (const claim of root.querySelectorAll(".fig-claim")) {
    const truth = found ? all_hold(data(claim.dataset.holds), compute, found.lookUp) : true;
    say(claim, truth ?? true);
    if (truth !== null) counts.claims += 1;
    if (truth === false) counts.turned += 1;
  }
  for (const figure of root.querySelectorAll("figure.figgen")) {
    const follows = chart(figure, found, catalog);
    counts.charts += follows;
    note(figure, found && !follows && tells(figure) ? "This figure shows the reference machine." : "");
  }
  for (const value of root.querySelectorAll("data[data-follows]")) {
    if (value.closest("figure[data-chart]")) continue;
    if (found) put(value, followed(data(value.dataset.follows), compute, found.lookUp));
    else restore(value);
    counts.values += value.classList.contains("is-yours");
  }
  for (const form of root.querySelectorAll("form.fig-ask")) ask(form, found);
  deriveAll(root, found);
  return counts;
}
