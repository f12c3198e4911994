// What printed meshes, layouts and placements answer to the cases of test_rank_maps.py, as JSON.

import fs from "node:fs";
import { InputError } from "./assets/javascripts/engine/errors.js";
import { coordinateArray, groupLists, groupOf, groupRanks, groupsAlong, nodesOf } from "./assets/javascripts/tools/map_ranks.js";
import { plain, record } from "./assets/javascripts/engine/records.js";
import { CONVENTIONS, convention } from "./assets/javascripts/models/machine/frameworks.js";
import { MOST_RANKS, layout, mesh_of } from "./assets/javascripts/models/machine/layout.js";
import { RankMesh, axis_size, axis_stride, coordinates_of, rank_of } from "./assets/javascripts/models/machine/mesh.js";
import { Sizes, problem } from "./assets/javascripts/models/machine/nearest.js";
import { LABELS, communicator, communicators, warnings } from "./assets/javascripts/models/machine/placement.js";

const SIZES = ["nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "dp", "order"];
const layoutOf = (given) => layout(...SIZES.map((name) => given[name]));
const groups = (mesh, axes) => groupLists(groupsAlong(mesh, axes));
const summary = (found) => ({ ...found, inter_node_share: found.inter_node_share });

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
  const rows = subsets.map((axes) => groupArray(mesh, axes));
  return {
    coordinates: [...coordinateArray(mesh)],
    by_name: ranks.map((rank) => plain(coordinates_of(mesh, rank))),
    back: ranks.map((rank) => rank_of(mesh, coordinates_of(mesh, rank))),
    strides: mesh.names.map((axis) => [axis_size(mesh, axis), axis_stride(mesh, axis)]),
    groups: subsets.map((axes) => groups(mesh, axes)),
    index: subsets.map((axes) => ranks.map((rank) => groupOf(groupsAlong(mesh, axes), rank))),
  };
}

function describedLayout(given) {
  const found = layoutOf(given);
  const { tp, cp, dp, pp, ep, etp, edp, order, world_size, has_experts } = found;
  const crossings = [...LABELS.keys()].map((axes) => said(() => {
    const rows = groupsAlong(mesh_of(found, axes), axes);
    const touched = groupLists(rows).map((ranks) => nodesOf(ranks, found.gpus_per_node));
    const links = touched.map((nodes) => (nodes > 1 ? nodes : 0));
    return [touched, links];
  }));
  return {
    sizes: { tp, cp, dp, pp, ep, etp, edp, order, world_size, has_experts },
    dense: found.dense.axes,
    expert: found.has_experts ? found.expert.axes : null,
    communicators: communicators(found).map(summary),
    combined: ["tp-cp", "tp-dp-cp", "etp-ep", "ep-edp"].map((axes) =>
      said(() => summary(communicator(found, axes))),
    ),
    warnings: warnings(found),
    crossings,
  };
}

async function largeLayout(given) {
  const found = layoutOf(given);
  const digests = {};
  for (const axes of [...LABELS.keys(), "tp-cp", "tp-pp", "etp-ep"]) {
    if (!found.has_experts && /ep|edp|etp/.test(axes)) continue;
    const all = groupsAlong(mesh_of(found, axes), axes);
    const ranks = new Int32Array(all.count * all.size);
    for (let group = 0; group < all.count; group++) ranks.set(groupRanks(all, group), group * all.size);
    digests[axes] = await sha256(ranks);
  }
  return { digests, communicators: communicators(found).map(summary) };
}

async function problems([worlds, largest, order]) {
  const chosen = convention(order);
  const sizes = range(largest).map((size) => size + 1);
  const digests = [];
  for (const world of worlds) {
    const texts = [];
    for (const tp of sizes) for (const cp of sizes) for (const pp of sizes) {
      for (const ep of sizes) for (const etp of sizes) {
        const found = problem(world, record(Sizes, { tp, cp, pp, ep, etp }), chosen);
        texts.push(found ? `${found.what}|${found.expected}|${found.got}` : "fits");
      }
    }
    digests.push(await sha256OfText(texts.join("\n")));
  }
  return digests;
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

const square = () => new RankMesh([["tp", 2], ["dp", 3]]);
const messages = {
  layout: (given) => void layoutOf(given),
  mesh_of: ([given, axes]) => void mesh_of(layoutOf(given), axes),
  rank_mesh: (axes) => void new RankMesh(axes),
  group_array: (axes) => void groupsAlong(square(), axes),
  rank_of: (coordinates) => void rank_of(square(), new Map(Object.entries(coordinates))),
  coordinates_of: (rank) => void coordinates_of(square(), rank),
};

const described = ({ name, label, order, etp, etp_fixed }) => ({ name, label, order, etp, etp_fixed });
const suites = {
  meshes: (given) => given.map(describedMesh),
  megatron: (given) => Promise.all(given.map(megatronCase)),
  refusals: (given) => given.map((one) => said(() => void layoutOf(one) ?? null)),
};

const { suite, given } = JSON.parse(fs.readFileSync("data.json", "utf8"));
console.log(JSON.stringify(await suites[suite](given)));
