// What the page's search over numbers of nodes says, as JSON.

import fs from "node:fs";
import { sizedCounts } from "./assets/javascripts/tools/planner_nodes.js";

const { catalog, cases } = JSON.parse(fs.readFileSync("data.json", "utf8"));

function sized([choices, question]) {
  try {
    return [...sizedCounts(catalog, choices, question)];
  } catch (error) {
    return { error: error.name === "InputError" ? error.message : error.stack };
  }
}
console.log(JSON.stringify(cases.map(sized)));
