// The worked line of a number: one popover for the whole tool, filled when a number is pressed.

import { el } from "./dom.js";

// The derivations, loaded when the first one is opened.
let loaded = null;

/** { press, goOn } for the numbers in `root`; `foundAt(name)` is the configuration or variant of one. */
export function workedLines(root, foundAt, signal) {
  const heading = el("strong");
  const content = el("div");
  const box = el(
    "div",
    {
      id: "modeler-how",
      class: "fig-how modeler-how",
      popover: "auto",
      role: "dialog",
      "aria-label": "How this is computed",
    },
    el("p", {}, heading),
    content,
  );
  root.append(box);
  let opened = null;
  const press = async (number) => {
    if (opened === number && box.matches(":popover-open")) {
      box.hidePopover();
      return;
    }
    const found = foundAt(number.dataset.of);
    if (!found) return;
    loaded ??= Promise.all([import("../formula-notes.js"), import("./modeler_how.js")]);
    const [{ notes }, { howOf, paragraphs }] = await loaded;
    if (signal.aborted) return;
    heading.textContent = number.textContent;
    content.replaceChildren(...howOf(number.dataset.how, found, notes).flatMap(paragraphs));
    opened = number;
    // The number becomes the popover's anchor, if the browser supports anchors.
    if (box.matches(":popover-open")) box.hidePopover();
    box.showPopover({ source: number });
  };
  return { press, goOn };
}

const ASIDE = { ArrowLeft: -1, ArrowRight: 1 };
const LINES = { ArrowUp: -1, ArrowDown: 1 };

// Arrow keys move between the numbers of a table or a list, which is a single stop of the Tab key.
function goOn(pressed, key) {
  // Keys pressed during loading continue from where the previous one led.
  const number = document.activeElement.closest("[data-how]") ?? pressed;
  const box = number.closest("[data-numbers]");
  if (!box) return;
  const all = [...box.querySelectorAll("[data-how]")].filter((one) => one.offsetParent);
  const next = key in ASIDE ? all[all.indexOf(number) + ASIDE[key]] : inLine(number, LINES[key], all);
  if (!next) return;
  number.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

// The number in the same column of the next line that has one.
function inLine(number, step, all) {
  const cell = number.closest("td, th");
  const line = all.filter((one) => one.closest("td, th")?.cellIndex === cell?.cellIndex);
  return line[line.indexOf(number) + step];
}
