// The GPU process mapping visualizer: one state, from the address or from the form, determines
// everything that is shown.

import { liveRegion, mountTool, perFrame, released, whenNear } from "./dom.js";
import { afterFrame } from "./painting.js";
import { makeForm, messagesOf } from "./map_form.js";
import { groupsOf, labelOf, movedRanks, plural, titleOf } from "./map_groups.js";
import { makePage } from "./map_page.js";
import { groupOf } from "./map_ranks.js";
import { makeDetails, makeLegend, makeShows } from "./map_panels.js";
import { makeStage } from "./map_stage.js";
import {
  evaluate, fromQuery, handedOn, named, queryOf, schemaOf, showsOf, standIn, within,
} from "./map_state.js";
import { makeTable } from "./map_table.js";
import { makeTakeaway } from "./map_take.js";
import { warnings } from "../models/machine/placement.js";
import { carry } from "./job_carried.js";
import { SIZES, tellJob } from "./job_record.js";
import { addressWriter } from "./address.js";
import { readAddress } from "./state.js";

const movedBy = new WeakMap(); // layout → which ranks moved
function movedOf(parallel) {
  if (!movedBy.has(parallel)) movedBy.set(parallel, movedRanks(parallel));
  return movedBy.get(parallel);
}

/** Builds the tool in `root` from the named layouts. */
async function build(root, signal, layouts) {
  const schema = schemaOf(layouts);
  const writeAddress = addressWriter(signal);
  let { state, problems, job } = await readAddress(location.search, schema, (query, job) => ({ job, ...fromQuery(schema, layouts, query) }));
  let [shown, pointed] = [null, null]; // the picture, the rank under the pointer
  let differing = null; // ranks that differ in pasted text, and the layout with which it was compared

  const change = (partial) => {
    state = named({ ...state, ...partial }, layouts, partial.preset ?? state.preset);
    problems = [];
    render();
  };
  const { region, say } = liveRegion();
  const form = makeForm(layouts, schema, change);
  const [shows, legend, details] = [makeShows(change), makeLegend(change), makeDetails(change)];
  const table = makeTable(change);
  const take = makeTakeaway((changes, said) => {
    if (said.size) job = said;
    change(changes);
    return Boolean(evaluate(state).parallel);
  }, (ranks) => {
    differing = { parallel: shown.parallel, ranks };
    render();
  }, say, signal);
  let cube = null;
  const pick = (rank) => change({ rank: rank === state.rank ? null : rank });
  const stage = makeStage({
    signal,
    onPoint: (rank) => {
      pointed = rank;
      cube?.point(rank);
      describe();
    },
    onPick: pick,
    onIsolate: (rank) =>
      shown.groups && change({ group: state.group === null ? groupOf(shown.groups, rank) : null }),
  });
  const page = makePage(root, { form, shows, stage, legend, details, table, take, region });

  // Parts below the first screen are created when a reader comes near; they have fixed heights, so
  // that nothing moves then.
  let [volumes, handed] = [null, ""]; // and the query with which the modeler opens the layout
  const near = (section, make) => {
    whenNear(async () => {
      const made = await make();
      await released();
      section.lastChild.replaceChildren(made);
    }, signal).observe(section);
  };
  near(page.volumes, async () => {
    const { makeVolumes } = await import("./map_volumes.js");
    volumes = makeVolumes();
    volumes.update(handed);
    return volumes.element;
  });
  near(page.cube, async () => {
    const { makeCube } = await import("./map_cube.js");
    const onPoint = (rank) => {
      pointed = rank;
      stage.point(rank);
      cube.point(rank);
      describe();
    };
    cube = makeCube({ signal, onPoint, onPick: pick });
    cube.show(shown);
    return cube.element;
  });

  const describe = perFrame(() => {
    if (!shown) return;
    const { parallel, pinned } = shown;
    details.update(parallel, pointed ?? pinned, showsOf(parallel), pinned);
  });
  const showTable = afterFrame(() => table.update(shown.parallel, state.show));
  const render = perFrame(() => {
    if (!signal.aborted) renderNow();
  });

  function renderNow() {
    const { parallel, error } = evaluate(state);
    if (parallel) showLayout(parallel, true);
    else if (!shown) showLayout(standIn(state, error, layouts), false);
    page.showSummary(shown.parallel, Boolean(parallel));
    const found = { parallel, error };
    if (parallel) Object.assign(found, { moved: movedOf(parallel), warnings: warnings(parallel) });
    form.update(state, found);
    take.update(state, parallel ? shown : null);
    page.showMessages((act) => messagesOf(state, found, problems, act), change);
    if (error) say(error.message);
    remember();
  }

  // `own` says whether it is the reader's configuration, or a substitute for it.
  function showLayout(parallel, own) {
    const names = showsOf(parallel);
    if (!names.includes(state.show)) state = { ...state, show: "tp", group: null };
    const groups = groupsOf(parallel, state.show);
    const pointing = within(state, parallel, groups?.count ?? 0);
    if (own) state = { ...pointing, dp: null };
    const moved = movedOf(parallel);
    shown = {
      parallel, groups, isolated: pointing.group, pinned: pointing.rank, shown: state.show,
      moved: differingOf(parallel) ?? (state.moved && moved.count ? moved.moved : null),
    };
    if (pointed !== null && pointed >= parallel.world_size) pointed = null;
    shows.update(state, parallel);
    legend.update(state, parallel, groups);
    stage.show(shown);
    cube?.show(shown);
    details.update(parallel, pointed ?? pointing.rank, names, pointing.rank);
    showTable();
    const told = [`${titleOf(parallel, "none")}.`];
    if (groups) told.push(`${labelOf(state.show)}: ${plural(groups.count, "group")} of ${groups.size}.`);
    say(told.join(" "));
  }

  // Marks ranks that differ from a pasted text; null for a different layout.
  function differingOf(parallel) {
    const same = ({ nodes, gpus_per_node, tp, cp, pp, ep, etp, order }) => [nodes, gpus_per_node, tp, cp, pp, ep, etp, order].join();
    if (!differing?.ranks.length || same(differing.parallel) !== same(parallel)) return null;
    const marks = new Uint8Array(parallel.world_size);
    for (const rank of differing.ranks) marks[rank] = 1;
    return marks;
  }

  function remember() {
    const query = new URLSearchParams([...new URLSearchParams(queryOf(schema, layouts, state)), ...carry(job)]).toString();
    const here = new URL(location.href);
    Object.assign(here, { search: query, hash: "" });
    take.setLink(here.href);
    handed = handedOn(schema, state, job);
    const told = new URLSearchParams(handed);
    for (const key of SIZES) if (state[key] !== null) told.set(key, state[key]);
    tellJob(told);
    volumes?.update(handed);
    writeAddress(query);
  }
  renderNow();
}

mountTool("#rank-map", build);
