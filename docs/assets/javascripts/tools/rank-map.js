// The GPU process mapping visualizer: one state, from the address or from the form; everything that
// is shown follows from it.

import { el, liveRegion, mountTool, perFrame } from "./dom.js";
import { makeForm, messagesOf } from "./map_form.js";
import { groupsOf, labelOf, membersOf, movedRanks, plural } from "./map_groups.js";
import { inksOf } from "./map_inks.js";
import { makeDetails, makeLegend, makeShows, makeTable } from "./map_panels.js";
import { makeStage } from "./map_stage.js";
import { FIRST_PRESET, applied, evaluate, fromQuery, named, ofPreset, queryOf, schemaOf, showsOf, within } from "./map_state.js";
import { makeTakeaway, titleOf } from "./map_take.js";
import { warnings } from "../engine/placement.js";
import { SHARED_KEYS, defaults, rewriteAddress, toQuery } from "./state.js";

const PRESETS = new URL("../../data/layouts.json", import.meta.url);
let loading = null;

const movedBy = new WeakMap(); // layout → which ranks moved
function movedOf(parallel) {
  if (!movedBy.has(parallel)) movedBy.set(parallel, movedRanks(parallel));
  return movedBy.get(parallel);
}

/** Builds the tool in `root` from the layouts that have a name. */
function build(root, signal, layouts) {
  const schema = schemaOf(layouts);
  let { state, problems } = fromQuery(schema, layouts, location.search);
  let [result, shown, pointed] = [null, null, null];

  const change = (partial) => {
    state = named({ ...state, ...partial }, layouts, partial.preset ?? state.preset);
    problems = [];
    render();
  };
  const { region, say } = liveRegion();
  const form = makeForm(layouts, change);
  const shows = makeShows(change);
  const legend = makeLegend(change);
  const details = makeDetails(change);
  const table = makeTable(change);
  const take = makeTakeaway(change, say);
  const detail = perFrame(() => shown && details.update(shown.parallel, pointed ?? state.rank, showsOf(shown.parallel), state.rank));
  const stage = makeStage({
    signal, marksOf,
    onPoint: (rank) => { pointed = rank; detail(); },
    onPick: (rank) => change({ rank: rank === state.rank ? null : rank }),
    onIsolate: (rank) => shown.groups && change({ group: state.group === null ? shown.groups.index[rank] : null }),
  });
  const messages = el("div", { class: "map-messages" });
  const summary = el("p", { class: "map-summary", tabindex: -1 });
  const keys = el("p", { id: "map-keys", class: "map-note" },
    "In the picture: arrow keys move, Enter chooses, i isolates the group, + and − zoom, 0 shows the whole; drag or pinch when zoomed, Ctrl and wheel zoom.");
  const links = el("p", { class: "map-note" });
  const picture = el("div", { class: "map-picture" },
    el("div", { class: "map-bar" }, shows.element, stage.zooms), stage.element, keys);
  root.replaceChildren(
    el("div", { class: "map-columns" },
      form.element,
      el("div", { class: "map-middle" }, summary, messages, picture),
      el("div", { class: "map-side" }, legend.element, details.element)),
    el("section", { class: "tool-section map-below", "aria-label": "Communicators" }, el("h2", {}, "Groups and the links they use"), table.element),
    el("section", { class: "tool-section map-below", "aria-label": "Take away" }, take.element, links), region);

  function marksOf(rank) {
    const { parallel } = shown;
    const inks = inksOf(shown.groups?.hue);
    const frame = (name, width) => {
      const view = groupsOf(parallel, name);
      return { ranks: membersOf(view, view.index[rank]), ink: inks.axis[view.hue], width };
    };
    const others = showsOf(parallel).filter((name) => name !== state.show && !name.includes("-") && name !== "none");
    const chosen = shown.groups ? [frame(state.show, 3)] : [];
    // Large groups first, so that a small one inside them is seen.
    const frames = others.map((name) => frame(name, 1.5)).sort((a, b) => b.ranks.length - a.ranks.length);
    return [...frames, ...chosen, { ranks: [rank], ink: inks.ink, width: 3 }];
  }

  const render = perFrame(() => {
    if (!signal.aborted) renderNow();
  });
  function renderNow() {
    const found = evaluate(state);
    result = found;
    if (found.parallel) showLayout(found.parallel);
    else if (!shown) showLayout(standIn(found.error));
    form.update(state, { ...found, moved: found.parallel && movedOf(found.parallel) });
    messages.replaceChildren(...messagesOf(state, { ...found, warnings: found.parallel && warnings(found.parallel) }, problems, (partial) => {
      change(partial);
      summary.focus(); // the button that was pressed will be gone
    }));
    picture.classList.toggle("is-stale", !found.parallel);
    if (found.error) {
      summary.replaceChildren("The picture shows another configuration, one that fits: ", ...summaryOf(shown.parallel));
      say(found.error.message);
    }
    remember();
  }

  // What is shown of a reader's first configuration where it does not fit.
  function standIn(error) {
    const near = error.nearest.length ? evaluate(applied(state, error.nearest[0])) : {};
    return near.parallel ?? evaluate({ ...state, ...ofPreset(layouts.find(({ name }) => name === FIRST_PRESET)), dp: null }).parallel;
  }

  function showLayout(parallel) {
    const groupCount = groupsOf(parallel, showsOf(parallel).includes(state.show) ? state.show : "tp")?.count ?? 0;
    if (!showsOf(parallel).includes(state.show)) state = { ...state, show: "tp", group: null };
    if (result.parallel) state = { ...within(state, parallel, groupCount), dp: null };
    const groups = groupsOf(parallel, state.show);
    const moved = movedOf(parallel);
    const { rank, group } = within(state, parallel, groupCount);
    shown = { parallel, groups, isolated: group, moved: state.moved && moved.count ? moved.moved : null, shown: state.show, pinned: rank };
    if (pointed !== null && pointed >= parallel.world_size) pointed = null;
    shows.update(state, parallel);
    legend.update(state, parallel, groups);
    stage.show(shown);
    details.update(parallel, pointed ?? state.rank, showsOf(parallel), state.rank);
    table.update(parallel, state.show);
    take.update(state, shown);
    summary.replaceChildren(...summaryOf(parallel));
    const coloured = groups ? ` ${labelOf(state.show)}: ${plural(groups.count, "group")} of ${groups.size}.` : "";
    say(`${titleOf(parallel, "none")}.${coloured}`);
  }

  let waiting = 0;
  function remember() {
    clearTimeout(waiting);
    const query = queryOf(schema, layouts, state);
    const here = new URL(location.href);
    here.search = query;
    here.hash = "";
    take.setLink(here.href);
    const handed = new URLSearchParams(toQuery(schema, { ...state, dp: null, rank: null, group: null, moved: false }, { ...defaults(schema), nodes: undefined }));
    if (state.preset) for (const key of ["nodes", "gpus", "tp", "cp", "ep", "etp", "pp"]) handed.delete(key);
    for (const key of [...handed.keys()]) if (!SHARED_KEYS.includes(key)) handed.delete(key);
    links.replaceChildren("The same configuration in the ", el("a", { href: `../modeler/?${handed}` }, "bandwidth and efficiency modeler"),
      ", and why it is laid out like this in ", el("a", { href: "../../guide/rank-mapping/" }, "the chapter on rank mapping"), ".");
    // Browsers limit how often an address may be rewritten.
    waiting = setTimeout(() => rewriteAddress(query), 150);
  }
  signal.addEventListener("abort", () => clearTimeout(waiting));
  renderNow();
}

const count = (value) => value.toLocaleString("en");

function summaryOf(parallel) {
  const { world_size, nodes, gpus_per_node, dense, expert, has_experts } = parallel;
  const grid = (mesh) => mesh.axes.map(([axis, size]) => `${axis.toUpperCase()} ${count(size)}`).join(" · ");
  const grids = [el("span", {}, `dense ${grid(dense)}`)];
  if (has_experts) grids.push(el("span", {}, `expert ${grid(expert)}`));
  return [el("strong", {}, `${count(world_size)} ${world_size === 1 ? "GPU" : "GPUs"}`), el("span", {}, `${plural(nodes, "node")} of ${count(gpus_per_node)}`), ...grids];
}

async function mount(root, signal) {
  try {
    loading ??= fetch(PRESETS).then((answer) => (answer.ok ? answer.json() : Promise.reject(new Error(`${answer.status}`))));
    const layouts = await loading;
    if (!signal.aborted) build(root, signal, layouts);
  } catch (error) {
    loading = null;
    root.replaceChildren(el("p", { class: "tool-message is-bad" }, "The tool could not be loaded; reload the page to try again."));
    console.warn(error);
  }
}

mountTool("#rank-map", mount);
