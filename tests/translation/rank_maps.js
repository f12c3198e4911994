// What printed meshes, layouts and placements answer to the cases of test_rank_maps.py, as JSON.

import fs from "node:fs";
import { InputError } from "./assets/javascripts/engine/errors.js";
import { coordinateArray, groupLists, groupOf, groupsAlong, nodesOf } from "./assets/javascripts/tools/map_ranks.js";
import { layout } from "./assets/javascripts/models/machine/layout.js";
import { RankMesh } from "./assets/javascripts/models/machine/mesh.js";

const SIZES = ["nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "dp", "order"];
const layoutOf = (given) => layout(...SIZES.map((name) => given[name]));
const groups = (mesh, axes) => groupLists(groupsAlong(mesh, axes));

function said(answer) {
  try {
    return answer();
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    return { error: error.message, nearest: error.nearest };
  }
}

async function sha256(bytes) {
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const sha256OfText = (text) => sha256(new TextEncoder().encode(text));

function describedMesh([sizes, subsets, node]) {
  const mesh = new RankMesh(sizes.map((size, at) => ["abcd"[at], size]));
  const rows = subsets.map((axes) => groupsAlong(mesh, axes));
  return {
    coordinates: [...coordinateArray(mesh)],
    groups: rows.map(groupLists),
    index: rows.map((one) => Array.from({ length: mesh.world_size }, (_, rank) => groupOf(one, rank))),
    nodes: rows.map((one) => groupLists(one).map((ranks) => nodesOf(ranks, node))),
  };
}

async function megatronCase({ world, dp, edp, order, dense, expert, ...sizes }) {
  const found = layoutOf({ nodes: world / 8, gpus_per_node: 8, dp, order, ...sizes });
  const names = { tp: "etp", dp: "edp", "tp-ep": "etp-ep" };
  const rows = async (mesh, axes, frozen) => {
    const got = groups(mesh, axes);
    if (Array.isArray(frozen)) return got;
    const written = JSON.stringify(got).replaceAll(",", ", ");
    const digest = await sha256OfText(written);
    return { n: got.length, first3: got.slice(0, 3), last: got.at(-1), sha256: digest };
  };
  const seen = { edp: found.edp, dense: {}, expert: {} };
  for (const axes in dense) seen.dense[axes] = await rows(found.dense, axes, dense[axes]);
  for (const axes in expert) {
    seen.expert[axes] = await rows(found.expert, names[axes] ?? axes, expert[axes]);
  }
  return seen;
}

const suites = {
  meshes: (given) => given.map(describedMesh),
  megatron: (given) => Promise.all(given.map(megatronCase)),
  refusals: (given) => given.map((one) => said(() => void layoutOf(one) ?? null)),
};

const { suite, given } = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify(await suites[suite](given)));
