// What a search of the printed planner says, as JSON.

import fs from "node:fs";
import { servedBy } from "./assets/javascripts/engine/job.js";
import { mapped, plain } from "./assets/javascripts/engine/records.js";
import { front, layout_at, same_as_best, terms_at } from "./assets/javascripts/models/planner/ranking.js";
import { page_plan, planned } from "./assets/javascripts/scenarios/tools/page_plan.js";

const { catalog, cases } = JSON.parse(fs.readFileSync("data.json", "utf8"));

function plan([choices, every, chance]) {
  try {
    const { job, about } = page_plan(servedBy(catalog), mapped(choices), every, chance);
    const { found } = [...planned(job)].at(-1);
    const { layouts, fitting, refused, least_bytes, step_s, memory_bytes, meshes } = found;
    const places = Array.from({ length: Math.min(40, fitting) }, (_, place) => place);
    return {
      layouts, fitting, refused: plain(refused), least_bytes, step_s: [...step_s], memory_bytes: [...memory_bytes],
      meshes: [...meshes], front: front(found), same: same_as_best(found, ...about.interval.residuals),
      best: places.map((place) => ({ ...layout_at(found, place) })), terms: places.map((place) => plain(terms_at(found, place))),
    };
  } catch (error) {
    return { error: error.name === "InputError" ? error.message : error.stack };
  }
}
console.log(JSON.stringify(cases.map(plan)));
