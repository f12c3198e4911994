// What the modules of the rank map answer to the cases of test_rank_map_{model,launch,state}.py, as JSON.

import { InputError } from "./engine/errors.js";
import { axis_stride } from "./models/machine/mesh.js";
import { launchOf } from "./tools/launch.js";
import { takenRows, takeLayout } from "./tools/map_taken.js";
import { groupsCsv, ranksDocument, ranksJson } from "./tools/map_files.js";
import { pointsOf } from "./tools/map_cube.js";
import { commandLine } from "./tools/map_take.js";
import { boxesOf } from "./tools/map_boxes.js";
import { communicatorRows, groupsOf, movedRanks, movedSentence, rankFacts, ranksInWords } from "./tools/map_groups.js";
import * as scenes from "./tools/map_scene.js";
import { applied, evaluate, fromQuery, queryOf, schemaOf, showsOf } from "./tools/map_state.js";
import { addressWriter } from "./tools/address.js";
import { defaults, readAddress } from "./tools/state.js";

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A configuration as the tool sees it: its JSON by digest, or its refusal and what the buttons do.
async function configuration(state) {
  const { parallel, error } = evaluate(state);
  if (error) {
    const fits = error.nearest.map((text) => Boolean(evaluate(applied(state, text)).parallel));
    return { error: error.message, nearest: error.nearest, fits };
  }
  const rows = communicatorRows(parallel, showsOf(parallel)).map((row) =>
    [row.name, row.grid, row.group_count, row.size, row.stride, row.nodes, row.level, row.intra_node_links, row.inter_node_links]);
  return { json: await sha256(ranksJson(parallel)), command: commandLine(state), rows, moved: movedRanks(parallel).count };
}

const wide = (mesh) => mesh.axes.map(([name, size]) => [name, size, axis_stride(mesh, name)].join()).filter((one) => !one.includes(",1,")).sort().join(";");

// Whether two layouts have the same groups; an axis of one rank has none, and whole experts have none.
function sameMeshes(one, other) {
  return wide(one.dense) === wide(other.dense) && (other.ep === 1 || wide(one.expert) === wide(other.expert));
}

function launched(state) {
  const { parallel } = evaluate(state);
  const names = ["megatron", "pytorch", "deepspeed", "torchtitan"];
  const found = Object.fromEntries(names.map((name) => [name, launchOf(name, parallel).text]));
  // The line of every framework, read back.
  const again = {};
  for (const [name, text] of Object.entries(found)) {
    const changes = text && takeLayout(text).changes;
    const read = changes && evaluate({ ...state, ...changes }).parallel;
    if (text) again[name] = Boolean(read) && sameMeshes(read, parallel);
  }
  return { found, again };
}

function facts([state, ranks]) {
  const { parallel } = evaluate(state);
  return ranks.map((rank) => {
    const { node, local, dense, expert, groups } = rankFacts(parallel, rank, showsOf(parallel));
    return { node, local, dense, expert, groups: Object.fromEntries(groups.map((g) => [g.name, [g.group, g.place, g.nodes, Array.from(g.members)]])) };
  });
}

// What is wrong with the picture of a cluster; nothing if all is well.
function arrangement([nodes, gpus, width, height, boxed]) {
  const scene = (boxed ? scenes.arrangeBoxes : scenes.arrange)(nodes, gpus, width, height);
  const { cell } = scene;
  const wrong = [];
  if (boxed && scene.per < 2) wrong.push("GPUs have cells of their own");
  if (cell <= 0 || scene.height > height + 0.01) wrong.push(`height ${scene.height}`);
  const places = new Set();
  for (let rank = 0; rank < scene.count; rank++) {
    const [x, y] = scenes.cellAt(scene, rank);
    places.add(`${x.toFixed(3)} ${y.toFixed(3)}`);
    if (x < -0.01 || x + cell > width + 0.01 || y < 0 || y + cell > scene.height + 0.01) wrong.push(`rank ${rank} is outside`);
    if (scenes.rankAt(scene, x + cell / 2, y + cell / 2) !== rank) wrong.push(`rank ${rank} is not where it is drawn`);
    for (const [dx, dy] of [[1, 0], [0, 1]]) {
      const next = scenes.neighbour(scene, rank, dx, dy);
      if (next !== rank && scenes.neighbour(scene, next, -dx, -dy) !== rank) wrong.push(`no way back from ${next} to ${rank}`);
    }
    const view = scenes.revealing(scene, { scale: 2, x: 0, y: 0 }, rank);
    const [left, top, side] = [(x - view.x) * view.scale, (y - view.y) * view.scale, cell * view.scale];
    if (left < -0.01 || top < -0.01 || left + side > scene.width + 0.01 || top + side > scene.height + 0.01) wrong.push(`rank ${rank} is not revealed`);
  }
  if (places.size !== scene.count) wrong.push("cells lie on each other");
  return wrong.slice(0, 3);
}

export const suites = {
  configurations: (given) => Promise.all(given.map(configuration)),
  launched: (given) => given.map(launched),
  pasted: (given) => given.map((text) => takeLayout(text)),
  pastedRows: (text) => takenRows(takeLayout(text).found),
  pastedTimes: (given) => given.map((text) => {
    const before = performance.now();
    takeLayout(text);
    return performance.now() - before;
  }),
  cubes: (given) => given.map((state) => {
    const { sizes, joined, at, ranks, pointOfRank } = pointsOf(evaluate(state).parallel);
    return { sizes, joined, at, ranks, pointOfRank: Array.from(pointOfRank) };
  }),
  facts: (given) => given.map(facts),
  boxes: (given) => given.map(([state, name, size]) => {
    const { parallel } = evaluate(state);
    const scene = scenes.arrangeBoxes(state.nodes, state.gpus, size, size);
    return { inBox: scene.inBox, boxes: boxesOf(scene, groupsOf(parallel, name)) };
  }),
  arrangements: (given) => given.map(arrangement),
  document: (given) => ranksDocument(evaluate(given).parallel),
  csv: (given) => groupsCsv(evaluate(given).parallel),
  words: (given) => given.map((ranks) => ranksInWords(Int32Array.from(ranks), 5)),
  moves: (given) => given.map((state) => movedSentence(evaluate(state).parallel, movedRanks(evaluate(state).parallel))),
  queries: ([layouts, queries]) => Promise.all(queries.map(async (query) => {
    const schema = schemaOf(layouts);
    const { state, problems } = await readAddress(query, schema, (given) => fromQuery(schema, layouts, given));
    const written = queryOf(schema, layouts, state);
    const again = fromQuery(schema, layouts, written);
    return { state, problems, written, again: again.state, plain: defaults(schema) };
  })),
  remembered: ([query, left]) => {
    addressWriter(new AbortController().signal)(query);
    if (left) history.pushState(null, "", left);
    return location.search;
  },
  states: ([layouts, states]) => states.map((state) => {
    const schema = schemaOf(layouts);
    const written = queryOf(schema, layouts, { ...defaults(schema), ...state });
    return { written, ...fromQuery(schema, layouts, written) };
  }),
  refuses: (given) => given.map((state) => {
    try {
      return evaluate(state).error?.message ?? null;
    } catch (error) {
      return error instanceof InputError ? "thrown" : String(error);
    }
  }),
};
