// What the engine's modules answer to the cases of test_engine_parity*.py, as JSON.

import { InputError } from "./engine/errors.js";
import { CONVENTIONS, convention } from "./engine/frameworks.js";
import { MOST_RANKS, layout, meshOf } from "./engine/layout.js";
import * as meshes from "./engine/mesh.js";
import { problem } from "./engine/nearest.js";
import * as placement from "./engine/placement.js";
import * as ranksOf from "./engine/ranks.js";
import { training } from "./engine_suites_training.js";

const range = (count) => Array.from({ length: count }, (_, index) => index);

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

function describedMesh([sizes, subsets]) {
  const mesh = meshes.rankMesh(sizes.map((size, at) => ["abcd"[at], size]));
  const ranks = range(mesh.world_size);
  return {
    world_size: mesh.world_size,
    coordinates: [...ranksOf.coordinateArray(mesh)],
    by_name: ranks.map((rank) => ranksOf.coordinatesOf(mesh, rank)),
    back: ranks.map((rank) => ranksOf.rankOf(mesh, ranksOf.coordinatesOf(mesh, rank))),
    strides: mesh.names.map((axis) => [meshes.axisSize(mesh, axis), meshes.axisStride(mesh, axis)]),
    groups: subsets.map((axes) => ranksOf.groups(mesh, axes)),
    index: subsets.map((axes) => [...ranksOf.groupIndex(meshes.groupArray(mesh, axes))]),
  };
}

function describedLayout(given) {
  const found = layout(given);
  const { tp, cp, dp, pp, ep, etp, edp, order, world_size, has_experts } = found;
  const crossings = [...placement.LABELS.keys()].map((axes) => said(() => {
    const rows = meshes.groupArray(meshOf(found, axes), axes);
    const touched = [...placement.nodesTouched(rows, found.gpus_per_node)];
    const links = [...placement.interNodeLinks(rows, found.gpus_per_node)];
    return [touched, links];
  }));
  return {
    sizes: { tp, cp, dp, pp, ep, etp, edp, order, world_size, has_experts },
    dense: found.dense.axes,
    expert: found.expert && found.expert.axes,
    communicators: placement.communicators(found),
    combined: ["tp-cp", "tp-dp-cp", "etp-ep", "ep-edp"].map((axes) =>
      said(() => placement.communicator(found, axes)),
    ),
    warnings: placement.warnings(found),
    crossings,
  };
}

async function largeLayout(given) {
  const found = layout(given);
  const digests = {};
  for (const axes of [...placement.LABELS.keys(), "tp-cp", "tp-pp", "etp-ep"]) {
    if (!found.expert && /ep|edp|etp/.test(axes)) continue;
    digests[axes] = await sha256(meshes.groupArray(meshOf(found, axes), axes).ranks);
  }
  return { digests, communicators: placement.communicators(found) };
}

async function problems([worlds, largest, order]) {
  const chosen = convention(order);
  const sizes = range(largest).map((size) => size + 1);
  const digests = [];
  for (const world of worlds) {
    const texts = [];
    for (const tp of sizes) for (const cp of sizes) for (const pp of sizes) {
      for (const ep of sizes) for (const etp of sizes) {
        const found = problem(world, { tp, cp, pp, ep, etp, dp: null }, chosen);
        texts.push(found ? `${found.what}|${found.expected}|${found.got}` : "fits");
      }
    }
    digests.push(await sha256OfText(texts.join("\n")));
  }
  return digests;
}

async function megatronCase({ world, dp, edp, order, dense, expert, ...sizes }) {
  const found = layout({ nodes: world / 8, gpus_per_node: 8, dp, order, ...sizes });
  const names = { tp: "etp", dp: "edp", "tp-ep": "etp-ep" };
  const rows = async (mesh, axes, frozen) => {
    const got = ranksOf.groups(mesh, axes);
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

const square = () => meshes.rankMesh([["tp", 2], ["dp", 3]]);
const messages = {
  layout: (given) => void layout(given),
  mesh_of: ([given, axes]) => void meshOf(layout(given), axes),
  rank_mesh: (axes) => void meshes.rankMesh(axes),
  group_array: (axes) => void meshes.groupArray(square(), axes),
  rank_of: (coordinates) => void ranksOf.rankOf(square(), coordinates),
  coordinates_of: (rank) => void ranksOf.coordinatesOf(square(), rank),
};

// The best of several runs, so that a busy machine does not count; in milliseconds.
function best(run) {
  const times = range(15).map(() => {
    const before = performance.now();
    run();
    return performance.now() - before;
  });
  return Math.min(...times);
}

function speed(given) {
  const found = layout(given);
  return {
    groups: best(() => {
      for (const axes of placement.LABELS.keys()) meshes.groupArray(meshOf(found, axes), axes);
    }),
    communicators: best(() => placement.communicators(found)),
  };
}

export const suites = {
  names: () => ({
    conventions: [...CONVENTIONS.values()],
    most_ranks: MOST_RANKS,
    labels: Object.fromEntries(placement.LABELS),
  }),
  orders: (given) => given.map((order) => said(() => convention(order))),
  meshes: (given) => given.map(describedMesh),
  layouts: (given) => given.map((one) => said(() => describedLayout(one))),
  large: (given) => Promise.all(given.map(largeLayout)),
  problems,
  megatron: (given) => Promise.all(given.map(megatronCase)),
  messages: (given) => given.map(([kind, one]) => said(() => messages[kind](one) ?? null)),
  speed: (given) => given.map(speed),
  ...training,
};
