// Pointer, wheel, fingers and keys on the picture of the rank map.

import { WHOLE, isFar, neighbour, rankAt } from "./map_scene.js";

const STILL = 4; // px that a pointer may move during a press

/** Connects the box and the overview of `stage` with the functions of `acts`. */
export function listen(stage, overview, acts) {
  const { signal } = acts;
  const { box } = stage;
  const on = (target, kind, listener, more = {}) =>
    target.addEventListener(kind, listener, { signal, ...more });
  const fingers = new Map(); // pointer → where it is
  let pressed = null;

  const place = (event) => {
    const edge = box.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  };
  const under = (event) => {
    const [x, y] = place(event);
    const { scene, view } = stage;
    const rank = rankAt(scene, x / view.scale + view.x, y / view.scale + view.y);
    return rank !== null && isFar(scene, view) ? rank - (rank % scene.inBox) : rank;
  };

  on(box, "pointerdown", (event) => {
    if (event.button || !stage.scene) return;
    fingers.set(event.pointerId, place(event));
    pressed = { at: place(event), from: stage.view, moved: fingers.size > 1 };
    if (stage.view.scale > 1 || fingers.size > 1) box.setPointerCapture(event.pointerId);
  });

  on(box, "pointermove", (event) => {
    if (!stage.scene) return;
    if (!fingers.has(event.pointerId)) {
      if (event.pointerType !== "touch") acts.hoverAt(under(event));
      return;
    }
    const before = spread(fingers);
    fingers.set(event.pointerId, place(event));
    if (fingers.size > 1) {
      const now = spread(fingers);
      if (before.size > 0) acts.zoom(now.size / before.size, now.x, now.y);
      return;
    }
    const [x, y] = place(event);
    const [dx, dy] = [x - pressed.at[0], y - pressed.at[1]];
    pressed.moved ||= Math.hypot(dx, dy) > STILL;
    if (!pressed.moved || stage.view.scale === 1) return;
    const { scale } = stage.view;
    acts.look({ scale, x: pressed.from.x - dx / scale, y: pressed.from.y - dy / scale });
  });

  const release = (event) => {
    const down = fingers.delete(event.pointerId);
    if (!down || event.type === "pointercancel" || !pressed || pressed.moved) return;
    const rank = under(event);
    if (rank !== null) acts.pick(rank);
  };
  on(box, "pointerup", release);
  on(box, "pointercancel", release);
  on(box, "pointerleave", () => stage.scene && acts.hoverAt(null));

  on(box, "dblclick", (event) => acts.zoom(2, ...place(event)));
  on(
    box,
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
      event.preventDefault();
      acts.zoom(Math.exp(-event.deltaY / 300), ...place(event));
    },
    { passive: false },
  );

  on(overview, "pointerdown", (event) => {
    const goTo = (move) => {
      const edge = overview.firstChild.getBoundingClientRect();
      const { scene, view } = stage;
      const x = ((move.clientX - edge.left) / edge.width) * scene.width - scene.width / view.scale / 2;
      const y =
        ((move.clientY - edge.top) / edge.height) * scene.height - scene.height / view.scale / 2;
      acts.look({ scale: view.scale, x, y });
    };
    overview.setPointerCapture(event.pointerId);
    goTo(event);
    overview.onpointermove = goTo;
    overview.onpointerup = overview.onpointercancel = () => {
      overview.onpointermove = null;
    };
  });

  on(box, "focus", () => {
    stage.focused = box.matches(":focus-visible");
    if (stage.focused) acts.moveTo(stage.cursor);
  });
  on(box, "blur", () => {
    stage.focused = false;
    acts.onPoint(null);
    acts.paintOver();
  });
  on(box, "keydown", (event) => {
    if (!stage.scene || event.altKey || event.metaKey || !keys(event)) return;
    event.preventDefault();
  });

  // True if the key was used.
  function keys(event) {
    const { scene, cursor } = stage;
    const arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[
      event.key
    ];
    const first = cursor - (cursor % scene.gpus);
    const jump = {
      Home: event.ctrlKey ? 0 : first,
      End: event.ctrlKey ? scene.count - 1 : first + scene.gpus - 1,
      PageUp: Math.max(cursor % scene.gpus, cursor - scene.gpus),
      PageDown: cursor + scene.gpus < scene.count ? cursor + scene.gpus : cursor,
    }[event.key];
    stage.focused = true;
    const [wide, tall] = isFar(scene, stage.view) ? [scene.columns, scene.rows] : [1, 1];
    if (arrow && !event.ctrlKey) acts.moveTo(neighbour(scene, cursor, arrow[0] * wide, arrow[1] * tall));
    else if (jump !== undefined) acts.moveTo(jump);
    else if (event.ctrlKey) return false;
    else if (event.key === "Enter" || event.key === " ") acts.pick(cursor);
    else if (event.key === "i") acts.onIsolate(cursor);
    else if (event.key === "+" || event.key === "=") acts.zoomStep(1.6);
    else if (event.key === "-") acts.zoomStep(1 / 1.6);
    else if (event.key === "0") acts.look(WHOLE);
    else if (event.key === "Escape" && acts.dismiss()) return true;
    else if (event.key === "Escape" && stage.pinned !== null) acts.pick(stage.pinned);
    else return false;
    return true;
  }
}

// The distance of two fingers, and the point between them.
function spread(fingers) {
  const [[ax, ay], [bx, by] = [ax, ay]] = [...fingers.values()];
  return { size: Math.hypot(ax - bx, ay - by), x: (ax + bx) / 2, y: (ay + by) / 2 };
}
