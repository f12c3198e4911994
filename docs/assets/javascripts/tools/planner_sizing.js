// The planner asked for a number of nodes: the answer in a sentence, the curve over nodes, a table.
// Loaded on request.

import { el, svgEl } from "./dom.js";
import { label, picture, round, ticksTo } from "./drawing.js";
import { note, num, table } from "./modeler_table.js";
import { nameOf } from "./planner_table.js";
import { plainNumber, quantity, seconds } from "./quantities.js";

const [LEFT, RIGHT, TOP, BOTTOM, HEIGHT] = [64, 18, 26, 40, 230];

const days = (count) => `${plainNumber(count)} ${count === 1 ? "day" : "days"}`;
const nodes = (count) => `${plainNumber(count)} ${count === 1 ? "node" : "nodes"}`;
const energy = (joules) => `${plainNumber(joules / 3.6e9)}\u00a0MWh`;
const between = ({ low_days: low, high_days: high }) => `${plainNumber(low)} to ${plainNumber(high)}`;
const tokens = (billions) => (billions >= 1000 ? `${plainNumber(billions / 1000)}T tokens` : `${plainNumber(billions)}B tokens`);

/** The answer in a sentence, or the reason why there is none. */
function sentence(question, counts, best) {
  if (best) {
    const takes = best.days === null ? "" : `: ${tokens(question.tokens)} in ${days(best.days)} (${between(best)})`;
    return el("p", { class: "plan-best" }, el("strong", {}, `${nodes(best.nodes)}, ${plainNumber(best.gpus)} GPUs`),
      `${takes}${best.price === null ? "" : `, at your price ${plainNumber(best.price)}`}. `,
      `${seconds(best.row.step_s)} a step with ${nameOf(best.row)}.`);
  }
  const fitting = counts.filter(({ row }) => row);
  const least = (key) => fitting.reduce((low, one) => (one[key] < low[key] ? one : low));
  const why = !fitting.length ? "The job fits on none of these numbers of nodes."
    : question.kind === "budget" ? `No number of nodes is that cheap: ${nodes(least("price").nodes)} cost least, ${plainNumber(least("price").price)}.`
    : `No number of nodes is that fast: ${nodes(least("days").nodes)} take ${days(least("days").days)}.`;
  return el("p", { class: "plan-best" }, why);
}

// Round numbers on a logarithmic axis.
function ticks(low, high) {
  const all = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    for (const factor of [1, 2, 5]) if (factor * power >= low && factor * power <= high) all.push(factor * power);
  }
  const every = Math.ceil(all.length / 5);
  return all.length < 2 ? ticksTo(high, 6).filter((at) => at >= low) : all.filter((_, at) => at % every === 0);
}

/** A curve over the number of nodes, on logarithmic axes, with the answer and the limit. */
function curve(title, counts, value, limit, best, format, width) {
  const points = counts.map((one) => [one.nodes, value(one), one]);
  const inside = points.map(([, size]) => size).concat(limit ?? []);
  const [low, high] = [Math.min(...inside) / 1.2, Math.max(...inside) * 1.2];
  const [first, last] = [points[0][0], Math.max(points.at(-1)[0], points[0][0] * 2)];
  const x = (count) => round(LEFT + (Math.log(count / first) / Math.log(last / first)) * (width - LEFT - RIGHT));
  const y = (size) => round(HEIGHT - BOTTOM - (Math.log(size / low) / Math.log(high / low)) * (HEIGHT - TOP - BOTTOM));
  const powers = counts.map((one) => one.nodes).filter((count) => Number.isInteger(Math.log2(count)));
  const every = Math.ceil(powers.length / (width < 400 ? 5 : 8));
  const line = points.map(([count, size], at) => `${at ? "L" : "M"}${x(count)} ${y(size)}`).join("");
  const said = `${title}: ${points.map(([count, size]) => `${format(size)} on ${plainNumber(count)}`).join(", ")}.`;
  return picture(said, width, HEIGHT,
    ...ticks(low, high).map((at) => svgEl("g", {},
      svgEl("line", { class: "plan-grid", x1: LEFT, x2: width - RIGHT, y1: y(at), y2: y(at) }),
      label(format(at), LEFT - 6, y(at) + 4, { class: "modeler-muted", "text-anchor": "end" }))),
    ...powers.filter((_, at) => at % every === 0).map((count) => label(plainNumber(count), x(count), HEIGHT - BOTTOM + 16, { class: "modeler-muted", "text-anchor": "middle" })),
    ...(limit ? [svgEl("line", { class: "plan-capacity", x1: LEFT, x2: width - RIGHT, y1: y(limit), y2: y(limit) })] : []),
    svgEl("path", { class: "plan-line", d: line }),
    ...points.map(([count, size, one]) => svgEl("circle", {
      class: one === best ? "plan-point is-chosen" : "plan-point", cx: x(count), cy: y(size), r: one === best ? 6 : 3,
    }, svgEl("title", {}, `${nodes(count)}: ${format(size)}`))),
    label(title, 0, 14), label("nodes", width - RIGHT, HEIGHT - 6, { class: "modeler-muted", "text-anchor": "end" }));
}

/** Fills a section: returns { show(question, counts, best, done, linkOf) }; `linkOf(one)` is the address of one number of nodes. */
export function sizingPanel(element) {
  const [said, figures, rows, about] = [el("div"), el("div", { class: "plan-curves" }), el("div"), el("div")];
  element.replaceChildren(element.firstElementChild, said, figures, about, rows);
  function draw(question, counts, best) {
    const fitting = counts.filter(({ row }) => row);
    const [room, timed] = [element.clientWidth || 600, question.kind !== "fewest"];
    const width = Math.max(280, timed && room > 640 ? (room - 16) / 2 : room);
    if (fitting.length < 2) return figures.replaceChildren();
    const step = curve("Time of a step", fitting, (one) => one.row.step_s, null, best, seconds, width);
    const priced = fitting[0].price !== null;
    figures.replaceChildren(...(timed ? [
      curve("Days of training", fitting, (one) => one.days, question.kind === "deadline" ? question.days : null, best, plainNumber, width),
      curve(priced ? "At your price" : "GPU-hours", fitting, (one) => (priced ? one.price : one.gpu_hours), question.kind === "budget" ? question.budget : null, best, (size) => quantity(size, "1", "si"), width),
    ] : [step]));
  }
  function line(one, best, question, linkOf) {
    const head = el("th", { scope: "row" }, el("a", { href: linkOf(one) }, plainNumber(one.nodes)), one === best ? el("strong", {}, " ✓ the answer") : "");
    if (!one.row) return el("tr", {}, head, el("td", { colspan: question.kind === "fewest" ? 2 : 6 }, `doesn't fit with a chance of ${plainNumber(100 * question.chance, 3)}%`));
    const cells = question.kind === "fewest" ? [] : [
      num(plainNumber(one.days), el("small", {}, between(one))), num(plainNumber(one.gpu_hours)),
      num(one.price === null ? "–" : plainNumber(one.price)), num(one.energy_j === null ? "–" : energy(one.energy_j)),
    ];
    return el("tr", {}, head, num(seconds(one.row.step_s)), cells, el("td", {}, nameOf(one.row)));
  }
  return {
    show(question, given, bestNodes, done, linkOf) {
      const counts = given.toSorted((one, other) => one.nodes - other.nodes);
      const best = counts.find((one) => one.nodes === bestNodes) ?? null;
      if (done) said.replaceChildren(sentence(question, counts, best));
      else said.replaceChildren(note(`${counts.length} numbers of nodes tried; the search goes on.`));
      draw(question, counts, best);
      const head = question.kind === "fewest" ? ["Nodes", "#Step", "Fastest safe layout"]
        : ["Nodes", "#Step", "#Days", "#GPU-hours", "#Price", "#Energy, at most", "Fastest safe layout"];
      rows.replaceChildren(table("Numbers of nodes that were tried", head, counts.map((one) => line(one, best, question, linkOf))));
      about.replaceChildren(note(`The batch stays at ${plainNumber(counts[0].global_batch)} sequences. Every layout fits with a chance of ${plainNumber(100 * question.chance, 3)}% or more.${question.kind === "fewest" ? "" : " Days include failures, with checkpoints saved behind training; energy is that of the GPUs at their power limit, without hosts, network and cooling."}`));
    },
    sentence: () => said.textContent,
  };
}
