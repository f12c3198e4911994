// Plays a film: one large frame instead of its stills, stepped by buttons, keys and a slider, or
// played. Before some scenes, readers who step are asked what comes next; an answer, or "show me",
// continues. Readers who play see the whole film and are asked afterward.

const SVG = "http://www.w3.org/2000/svg";
const BEAT_MS = 1100; // from one scene to the next
const still = matchMedia("(prefers-reduced-motion: reduce)");

const make = (tag, given = {}, ...children) => fill(document.createElement(tag), given, children);
const draw = (tag, given = {}, ...children) => fill(document.createElementNS(SVG, tag), given, children);
function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Replaces the stills in `picture` by the player of the film at `data-film`. */
export async function mount(picture) {
  const answer = await fetch(new URL(picture.dataset.film, document.baseURI));
  if (!answer.ok) throw new Error(`${answer.status} for ${picture.dataset.film}`);
  const film = await answer.json();
  const stills = picture.querySelector(".fig-scroll");
  if (!picture.isConnected || picture.querySelector(".film")) return;
  const player = build(film, stills);
  // Where a reader is already looking, the content below keeps its place.
  const { top, bottom, height } = stills.getBoundingClientRect();
  if (bottom > 0 && top < innerHeight) {
    player.style.minHeight = `${height}px`;
    for (const kind of ["click", "keydown"]) player.addEventListener(kind, () => { player.style.minHeight = ""; }, { once: true });
  }
  stills.before(player);
  stills.hidden = true;
}

function build({ width, height, opens, scenes }, stills) {
  let [at, timer] = [0, 0];
  let poster = false; // shows an informative scene until the reader begins with the first
  const asked = new Set(); // scenes whose question has been answered, or passed over
  const things = new Map(); // name → its group
  const svg = draw("svg", {
    class: "fig film-frame", viewBox: `-2 -2 ${width + 4} ${height + 4}`, role: "img",
    "aria-label": stills.querySelector("svg").getAttribute("aria-label"),
  });
  const says = make("p", { class: "film-says", "aria-live": "polite" });
  const asks = make("div", { class: "film-asks" });
  asks.hidden = true;
  const slider = make("input", { type: "range", min: 0, max: scenes.length - 1, step: 1, "aria-label": "Scene" });
  slider.addEventListener("input", () => {
    for (let scene = 0; scene <= slider.value; scene++) asked.add(scene);
    go(Number(slider.value));
  });
  const button = (text, act, label = text) => {
    const made = make("button", { type: "button", class: "fig-button", "aria-label": label }, text);
    made.addEventListener("click", act);
    return made;
  };
  const play = button("Play", () => (timer ? stop() : start()));
  const bar = make("div", { class: "film-bar" }, button("‹", () => back(), "Previous scene"), play, button("›", () => on(), "Next scene"), slider);
  const player = make("div", {
    class: "film", role: "group", tabindex: 0,
    "aria-label": `${stills.getAttribute("aria-label")}, player: arrow keys step, the space bar plays`,
  }, svg, says, bar, asks);
  player.addEventListener("keydown", (event) => {
    if (event.target !== player || event.altKey || event.ctrlKey || event.metaKey) return;
    const act = { ArrowRight: on, ArrowLeft: back, Home: () => go(0), End: () => on(scenes.length - 1), " ": () => still.matches ? on() : timer ? stop() : start() }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  const motion = () => {
    play.hidden = still.matches;
    if (still.matches) stop();
  };
  still.addEventListener("change", motion);
  motion();

  function start() {
    play.textContent = play.ariaLabel = "Pause";
    timer = setInterval(() => (player.isConnected && at < scenes.length - 1 ? on(undefined, true) : end()), BEAT_MS);
    if (at === scenes.length - 1) go(0);
    else on(undefined, true);
  }
  // The last scene is followed by the first question that has not been answered.
  function end() {
    stop();
    const open = scenes.findIndex((scene, index) => scene.asks && !asked.has(index));
    if (player.isConnected && open > 0) ask(open);
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = play.ariaLabel = "Play";
  }
  function back() {
    stop();
    go(Math.max(0, at - 1));
  }

  // Continues to a scene, by default the next one, or to the first question before it.
  function on(to, playing = false) {
    if (!playing) stop();
    if (poster) {
      go(0);
      if (to === undefined) return;
    }
    to = Math.min(to ?? at + 1, scenes.length - 1);
    for (let scene = at + 1; scene <= to; scene++) {
      if (!playing && scenes[scene].asks && !asked.has(scene)) {
        stop();
        if (scene - 1 !== at) go(scene - 1);
        return ask(scene);
      }
    }
    go(to);
  }

  function ask(scene) {
    const [text, choices, right, because] = scenes[scene].asks;
    const reply = (choice) => {
      asked.add(scene);
      const verdict = choice === null ? "" : choice === right ? "Yes. " : `No: ${choices[right]}. `;
      go(scene);
      asks.replaceChildren(make("p", { role: "status", class: choice === right ? "is-right" : "" }, `${verdict}${because}`));
      asks.hidden = false;
      player.focus({ preventScroll: true });
    };
    asks.replaceChildren(make("p", {}, text),
      ...choices.map((choice, index) => button(choice, () => reply(index))), button("show me", () => reply(null)));
    asks.hidden = false;
    asks.querySelector("button").focus({ preventScroll: true });
  }

  function go(to) {
    poster = false;
    // Scenes are stored as changes: going back replays them from the start.
    const forward = to === at + 1;
    if (to < at || at === 0) {
      svg.replaceChildren();
      things.clear();
      at = -1;
    }
    for (let scene = at + 1; scene <= to; scene++) show(scenes[scene], forward && scene === to);
    at = to;
    slider.value = at;
    slider.setAttribute("aria-valuetext", `${at} of ${scenes.length - 1}: ${scenes[at].says}`);
    says.textContent = scenes[at].says;
    asks.hidden = true;
  }

  function show({ set, drop = [] }, moving) {
    for (const name of drop) {
      things.get(name)?.remove();
      things.delete(name);
    }
    for (const [name, x, y, w, h, text, role, strong, fromX, fromY] of set) {
      let group = things.get(name);
      const fresh = !group;
      if (fresh) {
        group = draw("g", { class: "film-thing" });
        things.set(name, group);
        svg.append(group);
      }
      const words = text && draw("text", { x: role ? w / 2 : 0, y: h / 2 + 4, "text-anchor": role ? "middle" : "start", "font-weight": strong ? 600 : 400 }, text);
      group.replaceChildren(...(role ? [draw("rect", { class: `r-${role}`, width: w, height: h, "stroke-width": strong ? 2.5 : 1 })] : []), ...(words ? [words] : []));
      const place = (left, top) => { group.style.transform = `translate(${left}px, ${top}px)`; };
      if (moving && fromX !== undefined && !still.matches) {
        group.style.transition = "none";
        place(fromX, fromY);
        group.getBoundingClientRect(); // begins there
        group.style.transition = "";
      } else if (fresh || !moving) group.style.transition = "none";
      place(x, y);
      if (fresh && !(moving && fromX !== undefined)) {
        group.getBoundingClientRect();
        group.style.transition = "";
      }
    }
  }
  at = 0;
  go(opens);
  poster = opens > 0;
  return player;
}
