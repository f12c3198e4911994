// Exports of the rank map: the link, pictures, files, and text for a launcher.

import { grouped } from "../engine/errors.js";
import { bringBox } from "./bring.js";
import { button, el, field } from "./dom.js";
import { copyText, download, showCommand } from "./files.js";
import { launchOf } from "./launch.js";
import { afterFrame } from "./painting.js";
import { commandLine, groupsCsv, ranksJson } from "./map_files.js";
import { labelOf } from "./map_groups.js";
import { inksOf } from "./map_inks.js";
import { fitted, paintCells } from "./map_paint.js";
import { WHOLE, arrange } from "./map_scene.js";
import { sceneFile } from "./map_svg.js";

/** The file name of a layout's picture. */
export function titleOf(parallel, show) {
  const { world_size, nodes, gpus_per_node, tp, cp, dp, pp, ep, etp } = parallel;
  const experts = ep > 1 ? `, EP ${ep}, ETP ${etp}` : "";
  const shown = show === "none" ? "" : `; colored by ${labelOf(show)} groups`;
  return `${grouped(world_size)} GPUs, ${grouped(nodes)} × ${gpus_per_node}: TP ${tp}, CP ${cp}, DP ${dp}, PP ${pp}${experts}${shown}`;
}

const LAUNCHERS = Object.entries({ megatron: "Megatron-LM", pytorch: "PyTorch", deepspeed: "DeepSpeed", torchtitan: "torchtitan", hostfile: "Hostfile", rankfile: "Rankfile" });
const NOTHING = { text: "", note: "This configuration can't be placed, so there's nothing to launch." };
const LOADING = Symbol("loading");
const UNPLACED = "The line was read, but its layout can't be placed; the message above the picture says why, and what would fit.";

// Files look the same whatever the window's size.
function sceneOf({ nodes, gpus_per_node, world_size }) {
  const side = world_size > 1024 ? 2400 : 1200;
  return arrange(nodes, gpus_per_node, side, side * 0.75);
}

/** The picture as an SVG file. */
export const svgFile = (picture) =>
  sceneFile(
    sceneOf(picture.parallel),
    picture,
    inksOf(picture.groups?.hue),
    titleOf(picture.parallel, picture.shown),
  );

/** The picture as a PNG, a blob. */
export function pngFile(picture) {
  const [scene, inks] = [sceneOf(picture.parallel), inksOf(picture.groups?.hue)];
  const [canvas, top] = [document.createElement("canvas"), 28];
  const context = fitted(canvas, scene.width, scene.height + top, scene.width > 2000 ? 1 : 2);
  context.fillStyle = inks.paper;
  context.fillRect(0, 0, scene.width, scene.height + top);
  context.fillStyle = inks.ink;
  context.font = `13px ${inks.font}`;
  context.fillText(titleOf(picture.parallel, picture.shown), 2, 16);
  context.translate(0, top);
  paintCells(context, scene, WHOLE, picture, inks);
  // Chromium delays `toBlob` until it is idle, which took half a minute on a slow machine.
  const packed = atob(canvas.toDataURL("image/png").split(",")[1]);
  return new Blob([Uint8Array.from(packed, (one) => one.charCodeAt(0))], { type: "image/png" });
}

/**
 * Returns { element, brought, update(state, picture) }; `picture` is null for a state that cannot be placed.
 * `load(changes)` takes a configuration that was pasted and says whether it can be placed; `mark(ranks)`
 * marks ranks that pasted hosts or ranks have elsewhere.
 */
export function makeTakeaway(load, mark, say, signal) {
  let [state, picture, chosen, hosts] = [null, null, "megatron", null];
  const name = () => `rank-map-${picture.parallel.world_size}`;
  const copying = (text) => async (event) => {
    const told = (await copyText(text())) ? "Copied" : "Select it and copy";
    const [pressed, before] = [event.currentTarget ?? event.target, event.target.textContent];
    say(told);
    pressed.textContent = told;
    setTimeout(() => {
      pressed.textContent = before;
    }, 1500);
  };
  const link = el("input", { readonly: true, on: { focus: () => link.select() } });
  const share = el(
    "div",
    { class: "map-share" },
    field("Link to this configuration", link),
    button(
      "Copy link",
      copying(() => link.value),
    ),
  );
  const files = el(
    "div",
    { class: "tool-actions" },
    button("SVG", () => download(`${name()}.svg`, svgFile(picture), "image/svg+xml"), {
      "data-file": "svg",
    }),
    button("PNG", () => download(`${name()}.png`, pngFile(picture), "image/png"), {
      "data-file": "png",
    }),
    button(
      "Groups, JSON",
      () => download(`${name()}.json`, ranksJson(picture.parallel), "application/json"),
      { "data-file": "json" },
    ),
    button("Groups, CSV", () => download(`${name()}.csv`, groupsCsv(picture.parallel), "text/csv"), {
      "data-file": "csv",
    }),
  );
  const prints = el("p", { class: "map-note" }, "This command prints the JSON:");
  const command = el("pre", { class: "tool-code map-command", tabindex: 0 });

  const code = el("pre", { class: "tool-code", tabindex: 0, "aria-label": "Launch settings" });
  const note = el("p", { class: "map-note" });
  const tabs = el(
    "div",
    { class: "tool-actions", role: "group", "aria-label": "Launch settings for" },
    LAUNCHERS.map(([key, label]) =>
      button(
        label,
        () => {
          chosen = key;
          showLaunch();
        },
        { "data-launcher": key },
      ),
    ),
  );
  const copy = button(
    "Copy",
    copying(() => code.textContent),
  );
  function showLaunch() {
    for (const tab of tabs.children)
      tab.setAttribute("aria-pressed", String(tab.dataset.launcher === chosen));
    const found = picture ? launchOf(chosen, picture.parallel, hosts) : NOTHING;
    showCommand(code, found.text);
    code.hidden = copy.hidden = !found.text;
    note.textContent = found.note;
  }

  let readAs = null; // the layout of the answer
  const brought = bringBox(async ({ text, answers, again }) => {
    const { askFor, placesOf, takeLayout, takenRows, told } = await import("./map_taken.js");
    const places = picture && placesOf(text, picture.parallel);
    if (places) {
      hosts = places.hosts;
      mark(places.ranks);
      showLaunch();
      return places.rows.map(told);
    }
    const { changes, found, problems } = takeLayout(text, answers);
    const ready = changes && !found.asked.length;
    const loaded = ready ? [load(changes) ? ["good", "The configuration was loaded."] : ["warning", UNPLACED]] : [];
    readAs = ready && LOADING;
    const bad = problems.map((problem) => ["bad", `${problem}${/[.?]$/.test(problem) ? "" : "."}`]);
    return [...[...bad, ...loaded, ...(found ? takenRows(found) : [])].map(told), ...askFor(found?.asked ?? [], again)];
  }, signal, { summary: "Bring your job: paste or drop a script, a configuration or a list of hosts" });
  const element = el(
    "div",
    { class: "map-take" },
    el(
      "section",
      {},
      el("h2", {}, "Take it away"),
      share,
      files,
      prints,
      command,
    ),
    el(
      "section",
      {},
      el("h2", {}, "Launch it"),
      tabs,
      code,
      el("div", { class: "tool-actions" }, copy),
      note,
    ),
  );
  const showLaunchSoon = afterFrame(showLaunch);
  function update(now, shown) {
    [state, picture] = [now, shown];
    for (const one of [...files.children, ...tabs.children]) one.disabled = !picture;
    prints.hidden = command.hidden = !picture;
    showCommand(command, commandLine(state));
    if (readAs === LOADING) readAs = command.textContent;
    else if (readAs && readAs !== command.textContent) {
      // The layout differs from the one that was read.
      brought.forget();
      readAs = null;
    }
    showLaunchSoon();
  }
  return {
    element,
    brought: brought.element,
    update,
    setLink: (address) => {
      link.value = address;
    },
  };
}
