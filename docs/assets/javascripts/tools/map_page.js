// The places of the rank map's parts on its page, and the words around the picture.

import { grouped } from "../engine/errors.js";
import { placement_sentence } from "../models/machine/placement_words.js";
import { button, el } from "./dom.js";
import { plural } from "./map_groups.js";

const KEYS =
  "In the picture: arrow keys move, Enter chooses, i isolates the group, + and − zoom, 0 shows the " +
  "whole; drag or pinch when zoomed, Ctrl and wheel zoom.";

/** Fills `root` with the parts. Returns { showSummary, showMessages, cube, volumes }. */
export function makePage(root, { form, shows, stage, legend, details, table, take, region }) {
  // An error covers the picture, which is not the requested one, and a warning is below it; neither
  // moves it while a reader types.
  const [problems, errors, warnings] = ["", " is-over", ""].map((kind) => el("div", { class: `map-messages${kind}` }));
  const sentence = el("p", { class: "tool-sentence" });
  let placed = "";
  const summary = el("p", { class: "map-summary", tabindex: -1 });
  const picture = el("div", { class: "map-picture" },
    el("div", { class: "map-bar" }, shows.element, stage.zooms),
    el("div", { class: "map-under" }, stage.element, errors),
    stage.note, warnings, el("p", { id: "map-keys", class: "map-note" }, KEYS));
  const below = (label, ...parts) =>
    el("section", { class: "tool-section map-below", "aria-label": label }, parts);
  const volumes = below("Messages", el("h2", {}, "What the groups carry in a training step"), el("div", { class: "map-late" }));
  const cube = below("Cube", el("h2", {}, "The same GPUs as a cube"), el("div", { class: "map-late" }));
  const carry = button("What they send", () => volumes.scrollIntoView());
  form.element.prepend(take.brought);
  root.replaceChildren(
    sentence,
    form.start,
    el("div", { class: "map-columns" },
      form.element,
      el("div", { class: "map-middle" }, summary, problems, picture),
      el("div", { class: "map-side" }, legend.element, details.element)),
    cube,
    below("Communicators", el("h2", {}, "Groups and the links they use"), table.element),
    volumes,
    below("Take away", take.element),
    region,
  );

  /** What is shown; `fits` says whether it is what was requested. */
  function showSummary(parallel, fits) {
    summary.replaceChildren(...summaryOf(parallel), carry);
    placed = placement_sentence(parallel);
    if (fits) sentence.textContent = placed;
    picture.classList.toggle("is-stale", !fits);
  }

  /** Messages about the input: `messages` of a function that applies a suggestion. */
  function showMessages(messagesFor, change) {
    const found = messagesFor((partial) => {
      change(partial);
      summary.focus(); // the button that was pressed will be removed
    });
    problems.replaceChildren(...found.problems);
    const other = el("p", {}, "The picture shows a different configuration, which fits.");
    errors.replaceChildren(...found.errors, ...(found.errors.length ? [other] : []));
    const [wrong] = found.errors;
    sentence.textContent = wrong ? `This job can't be placed: ${wrong.querySelector("p").textContent.replace(/^✕ ?/, "")}` : placed;
    warnings.replaceChildren(...found.warnings);
  }

  return { showSummary, showMessages, cube, volumes };
}

function summaryOf(parallel) {
  const { world_size, nodes, gpus_per_node, dense, has_experts } = parallel;
  const grid = (name, mesh) => {
    const sizes = mesh.axes.map(([axis, size]) => `${axis.toUpperCase()} ${grouped(size)}`);
    return el("span", {}, `${name} ${sizes.join(" · ")}`);
  };
  return [
    el("strong", {}, `${grouped(world_size)} ${world_size === 1 ? "GPU" : "GPUs"}`),
    el("span", {}, `${plural(nodes, "node")} of ${grouped(gpus_per_node)}`),
    grid("dense", dense),
    ...(has_experts ? [grid("expert", parallel.expert)] : []),
  ];
}
