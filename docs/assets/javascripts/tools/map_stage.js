// The picture of the rank map in the page: an SVG or a canvas, marks above it, an overview,
// and a cursor that is one cell of a grid to a screen reader.

import { button, el, perFrame } from "./dom.js";
import { onPalette } from "./painting.js";
import { groupsOf, rankSentence } from "./map_groups.js";
import { listen } from "./map_input.js";
import { inksOf } from "./map_inks.js";
import { fitted, paintCells, paintMarks, paintOverview } from "./map_paint.js";
import { groupOf, groupRanks } from "./map_ranks.js";
import { WHOLE, arrangeBoxes, cellAt, deepest, inside, isFar, revealing, zoomed } from "./map_scene.js";
import { showsOf } from "./map_state.js";
import { MOST_ELEMENTS, colourScene, drawScene } from "./map_svg.js";
import { makeTip } from "./map_tip.js";

const OVERVIEW = 132; // px
const BESIDE = "(min-width: 74.01em)"; // as in rank-map.css

/**
 * `onPoint(rank | null)` is called when a GPU is pointed at, `onPick(rank)` when it is chosen,
 * `onIsolate(rank)` when its group is. Returns { element, zooms, show }.
 */
export function makeStage({ signal, onPoint, onPick, onIsolate }) {
  const cells = el("canvas", { class: "map-cells" });
  const marks = el("canvas", { class: "map-marks" });
  const small = el("canvas", { class: "map-small" });
  const cell = el("span", { role: "gridcell", id: "map-cursor" });
  const row = el("span", { role: "row" }, cell);
  const box = el(
    "div",
    {
      class: "map-box",
      role: "grid",
      tabindex: 0,
      "aria-label": "GPUs by node",
      "aria-activedescendant": "map-cursor",
      "aria-describedby": "map-keys",
    },
    cells,
    marks,
    el("span", { class: "tool-live" }, row),
  );
  const overview = el("div", { class: "map-overview", hidden: true, "aria-hidden": "true" }, small);
  const tip = makeTip();
  const whole = document.createElement("canvas");
  const stage = {
    box,
    scene: null,
    view: WHOLE,
    cursor: 0,
    hover: null,
    focused: false,
    picture: null,
    pinned: null,
  };
  const note = el("p", { class: "map-note", hidden: true });
  let [drawing, resized] = [null, 0];
  let boxes = null; // how boxes of several nodes are painted, once there are any

  const density = () => Math.min(2, window.devicePixelRatio || 1);
  const paint = perFrame(paintNow);
  const paintOver = perFrame(paintMarksNow);

  function paintNow() {
    const { scene, view, picture } = stage;
    if (!scene) return;
    const vector = scene.count <= MOST_ELEMENTS;
    cells.hidden = vector;
    if (vector) {
      const [wide, tall] = [scene.width / view.scale, scene.height / view.scale];
      drawing?.setAttribute("viewBox", `${view.x} ${view.y} ${wide} ${tall}`);
    } else {
      paintOn(fitted(cells, scene.width, scene.height, density()), view, picture);
    }
    note.hidden = !boxes || !isFar(scene, view);
    if (!note.hidden) note.textContent = boxes.boxNote(scene, picture);
    overview.hidden = view.scale === 1;
    box.classList.toggle("is-zoomed", view.scale > 1);
    if (!overview.hidden) paintSmall();
    paintMarksNow();
    out.disabled = fit.disabled = view.scale === 1;
    into.disabled = view.scale >= deepest(scene) - 1e-9;
  }

  function paintOn(context, view, picture) {
    const { scene } = stage;
    const inks = inksOf(picture.groups?.hue);
    if (scene.per > 1 && !boxes) return;
    if (isFar(scene, view)) return boxes.paintBoxes(context, scene, view, picture, inks);
    paintCells(context, scene, view, picture, inks);
    if (scene.per > 1) boxes.paintNodes(context, scene, view, inks.paper);
  }

  function paintSmall() {
    const { scene, view, picture } = stage;
    const scale = OVERVIEW / Math.max(scene.width, scene.height);
    const [width, height] = [Math.round(scene.width * scale), Math.round(scene.height * scale)];
    const inks = inksOf(picture.groups?.hue);
    if (!whole.fresh) {
      paintOn(fitted(whole, scene.width, scene.height, 1), WHOLE, { ...picture, moved: null });
      whole.fresh = true;
    }
    small.style.width = `${width}px`;
    small.style.height = `${height}px`;
    paintOverview(fitted(small, width, height, density()), scene, view, whole, width, height, inks.ink);
  }

  function paintMarksNow() {
    const { scene, view } = stage;
    if (!scene) return;
    const context = fitted(marks, scene.width, scene.height, density());
    const at = stage.hover ?? (stage.focused ? stage.cursor : stage.pinned);
    const rank = at !== null && at < scene.count ? at : null;
    // Where the panel with all groups is next to the picture, a choice is not described twice.
    const beside = matchMedia(BESIDE).matches;
    const quiet = beside && stage.hover === null && !stage.focused;
    const box = boxes && rank !== null && isFar(scene, view) ? boxes.boxInWords(scene, stage.picture, rank) : "";
    tip.show(stage, quiet ? null : rank, beside, box);
    if (rank === null) return;
    const frame = isFar(scene, view) ? boxes?.frameBoxes : paintMarks;
    frame?.(context, scene, view, marksOf(stage.picture, rank));
  }

  /** Shows a picture: { parallel, groups, isolated, moved, shown, pinned }. */
  function show(picture) {
    const resize = !stage.scene || stage.picture.parallel !== picture.parallel;
    stage.picture = picture;
    stage.pinned = picture.pinned;
    if (picture.pinned !== null) stage.cursor = picture.pinned;
    whole.fresh = false;
    if (resize) layOut();
    else if (drawing) colourScene(drawing, stage.scene, picture);
    describe();
    paintNow();
  }

  function layOut() {
    const { parallel } = stage.picture;
    const before = stage.scene;
    const width = Math.max(200, Math.floor((resized ||= box.clientWidth) || 640)); // reading it forces a layout
    const height =
      width < 560
        ? Math.max(420, Math.min(640, window.innerHeight * 0.75))
        : Math.max(420, Math.min(660, window.innerHeight * 0.78));
    const far = (made) => {
      boxes = made;
      paint();
    };
    stage.scene = arrangeBoxes(parallel.nodes, parallel.gpus_per_node, width, height);
    if (stage.scene.per > 1 && !boxes) import("./map_boxes.js").then(far);
    const same = before && before.nodes === parallel.nodes && before.gpus === parallel.gpus_per_node;
    stage.view = same ? inside(stage.scene, stage.view) : WHOLE;
    stage.cursor = Math.min(stage.cursor, stage.scene.count - 1);
    stage.hover = null;
    box.style.height = `${Math.ceil(stage.scene.height)}px`;
    box.setAttribute("aria-rowcount", parallel.nodes);
    box.setAttribute("aria-colcount", parallel.gpus_per_node);
    if (same && drawing && before.width === stage.scene.width && before.height === stage.scene.height) {
      return colourScene(drawing, stage.scene, stage.picture);
    }
    drawing?.remove();
    drawing = null;
    if (stage.scene.count > MOST_ELEMENTS) return;
    drawing = drawScene(stage.scene);
    colourScene(drawing, stage.scene, stage.picture);
    box.prepend(drawing);
  }

  function describe() {
    const { parallel, shown } = stage.picture;
    const rank = stage.cursor;
    cell.setAttribute("aria-label", rankSentence(parallel, rank, shown));
    cell.setAttribute("aria-selected", String(rank === stage.pinned));
    cell.setAttribute("aria-colindex", (rank % parallel.gpus_per_node) + 1);
    row.setAttribute("aria-rowindex", Math.floor(rank / parallel.gpus_per_node) + 1);
  }

  function look(view) {
    stage.view = inside(stage.scene, view);
    paint();
  }

  function zoom(factor, px = stage.scene.width / 2, py = stage.scene.height / 2) {
    look(zoomed(stage.scene, stage.view, factor, px, py));
  }

  function zoomStep(factor) {
    // A reader wants to enlarge the keyboard's position, if there is one.
    const rank = stage.focused ? stage.cursor : stage.pinned;
    if (rank === null) return zoom(factor);
    const [x, y] = cellAt(stage.scene, rank);
    zoom(factor, (x - stage.view.x) * stage.view.scale, (y - stage.view.y) * stage.view.scale);
    look(revealing(stage.scene, stage.view, rank));
  }

  function moveTo(rank) {
    stage.cursor = rank;
    stage.hover = null;
    describe();
    onPoint(rank);
    if (stage.view.scale > 1) look(revealing(stage.scene, stage.view, rank));
    else paintOver();
  }

  function hoverAt(rank) {
    if (rank === stage.hover) return;
    stage.hover = rank;
    onPoint(rank);
    paintOver();
  }

  function pick(rank) {
    stage.cursor = rank;
    describe();
    onPick(rank);
  }

  const out = button("−", () => zoomStep(1 / 1.6), { "aria-label": "Zoom out" });
  const into = button("+", () => zoomStep(1.6), { "aria-label": "Zoom in" });
  const fit = button("Whole", () => look(WHOLE), { "aria-label": "Show the whole cluster" });
  const element = el("div", { class: "map-stage" }, box, overview, tip.element);
  const zooms = el("div", { class: "map-zoom", role: "group", "aria-label": "Zoom" }, out, into, fit);

  listen(stage, overview, {
    signal,
    zoom,
    zoomStep,
    look,
    moveTo,
    hoverAt,
    pick,
    onIsolate,
    paintOver,
    onPoint,
    dismiss: () => tip.dismiss(stage.hover ?? stage.cursor),
  });
  const watcher = new ResizeObserver(
    perFrame(() => {
      if (!stage.picture || Math.abs(box.clientWidth - resized) < 1) return;
      resized = box.clientWidth;
      whole.fresh = false;
      layOut();
      paintNow();
    }),
  );
  watcher.observe(element);
  signal.addEventListener("abort", () => watcher.disconnect());
  onPalette(() => {
    inksOf.forget();
    whole.fresh = false;
    paint();
  }, signal);

  return {
    element,
    zooms,
    note,
    show,
    /** Frames the groups of a GPU that is pointed at in another part. */
    point: (rank) => {
      stage.hover = rank;
      paintOver();
    },
  };
}

// Frames around the groups of a rank: thin ones in the colors of their axes, a strong one around
// the group of the communicator that is shown, the strongest around the rank itself.
function marksOf({ parallel, groups, shown }, rank) {
  const inks = inksOf(groups?.hue);
  const frame = (name, width) => {
    const view = groupsOf(parallel, name);
    // The axes of the expert grid have the hues of the dense ones, and dashes.
    const dashed = name === "edp" || name === "etp";
    return { ranks: groupRanks(view, groupOf(view, rank)), ink: inks.axis[view.hue], width, dashed };
  };
  const axes = showsOf(parallel).filter((name) => name !== "none" && !name.includes("-"));
  const others = axes.filter((name) => name !== shown).map((name) => frame(name, 1.5));
  // Large groups first, so that a small one inside them stays visible.
  others.sort((a, b) => b.ranks.length - a.ranks.length);
  const chosen = groups ? [frame(shown, 3)] : [];
  return [...others, ...chosen, { ranks: [rank], ink: inks.ink, width: 3 }];
}
