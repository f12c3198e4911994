// Describes a GPU next to its cell, at the pointer, the finger or the cursor.

import { el } from "./dom.js";
import { pointInWords, rankFacts, ranksInWords } from "./map_groups.js";
import { cellAt } from "./map_scene.js";
import { showsOf } from "./map_state.js";

const GAP = 6; // px between a cell and its description

/** Returns { element, show(stage, rank, brief, box) }; a rank of null hides it. Screen readers have the grid's cell. */
export function makeTip() {
  const element = el("div", { class: "map-tip", "aria-hidden": "true", hidden: true });
  let [said, away] = ["", null];

  /** With `brief`, only the shown group is listed; the panel next to the picture lists the others. `box` is what is said first. */
  function show({ picture, scene, view }, rank, brief, box) {
    element.hidden = rank === null || rank === away;
    if (rank !== away) away = null;
    if (element.hidden) return;
    const { parallel, shown } = picture;
    const key = [rank, brief, shown, box].join();
    if (said !== key || element.parallel !== parallel) {
      const names = brief ? [shown] : showsOf(parallel);
      element.replaceChildren(...(box ? [el("strong", {}, box)] : []), ...lines(parallel, rank, names, shown));
      [said, element.parallel] = [key, parallel];
    }
    const [left, top] = cellAt(scene, rank);
    const size = scene.cell * view.scale;
    const [x, y] = [(left - view.x) * view.scale, (top - view.y) * view.scale];
    const [wide, tall] = [element.offsetWidth, element.offsetHeight];
    const below = y + size + GAP;
    const fits = below + tall <= scene.height || y - tall - GAP < 0;
    element.style.left = `${Math.max(0, Math.min(x + size / 2 - wide / 2, scene.width - wide))}px`;
    element.style.top = `${fits ? below : y - tall - GAP}px`;
  }

  return {
    element,
    show,
    /** Hides the tip until a different GPU is pointed at; returns false if it was not shown. */
    dismiss(rank) {
      if (element.hidden) return false;
      [away, element.hidden] = [rank, true];
      return true;
    },
  };
}

function lines(parallel, rank, names, shown) {
  const facts = rankFacts(parallel, rank, names);
  return [
    el("strong", {}, `Rank ${rank}`),
    el("span", {}, `node ${facts.node}, GPU ${facts.local}`),
    el("span", {}, pointInWords(facts.dense)),
    ...(facts.expert ? [el("span", {}, pointInWords(facts.expert))] : []),
    ...facts.groups.map(({ name, label, hue, group, members, size }) =>
      el(
        "span",
        { class: name === shown ? "is-shown" : null },
        el("b", { class: `map-tag map-hue-${name}`, "data-hue": hue }, `${label} ${group}`),
        size === 1 ? " alone" : ` ${ranksInWords(members, 4)}`,
      ),
    ),
  ];
}
