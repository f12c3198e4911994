// A page of the journey on the reader's cluster: the form above the page, the address, the way back.
// Loaded when a reader requests it, or arrives with an address that has a job.

import { catalog } from "../catalog.js";
import { button, el, field, liveRegion, selectField } from "./dom.js";
import { carry, jobIn } from "./job_carried.js";
import { tellJob } from "./job_record.js";
import { OWN_CHIP, OWN_LINK, journey, readRecord } from "./journey_jobs.js";
import { showJourney } from "./journey_page.js";
import { allOptions } from "./modeler_options.js";

const OPTIONS = new Map(allOptions(catalog).map((option) => [option.name, option]));
const MACHINE = ["accelerator", "nodes", "gpus_per_node", "nic", "software"];
const WORK = ["model", "sequence", "global_batch"];
const OWN_WORDS = { peak: "Peak, TFLOP/s", hbm: "Memory, GB", bw: "Memory bandwidth, GB/s", up: "Link in the node, GB/s", net: "Network, GB/s per GPU" };
const OWN_AT_FIRST = { peak: 165, hbm: 24, bw: 1008, up: 32, net: 12.5 };

// The steps of a slider: powers of two.
const STEPS = { nodes: [0, 10], tp: [0, 3], pp: [0, 5], microbatch_size: [0, 4], sequence: [9, 17] };
// Parts of the pages with a slider.
const LAYOUT = ["tp", "pp", "microbatch_size"];

const counted = (many, what) => `${many} ${what}${many === 1 ? "" : "s"}`;

let shown = null;
const style = el("link", { rel: "stylesheet", href: new URL("../../stylesheets/journey.css", import.meta.url) });
const styled = new Promise((done) => {
  style.onload = style.onerror = done;
});
document.head.append(style);
// The script that loads this one may run while the page is still being parsed.
const parsed = document.readyState === "loading" ? new Promise((done) => addEventListener("DOMContentLoaded", done)) : null;

/** Shows the current page, with its form in the `details` of the line above it. */
export async function follow() {
  await styled;
  await parsed;
  const line = document.querySelector(".job-line");
  const box = document.querySelector(".job-yours");
  if (!line || !box) return;
  if (shown?.box !== box) shown = pageOf(line, box);
  shown.update();
}

function pageOf(line, box) {
  const page = Number(line.dataset.journey);
  const { job: reference, sliders: named = "" } = line.dataset;
  const sliderNames = named.split(" ").filter(Boolean);
  const root = document.querySelector("article");
  const usual = journey(catalog, page, {}).step(page).choices;
  const { region, say } = liveRegion();
  const form = el("form", { class: "yours-form", on: { submit: (event) => event.preventDefault() } });
  const now = el("p", { class: "job-now", hidden: true });
  box.querySelector(".yours-place").replaceChildren(form, region);
  box.before(now);

  const change = (key, value) => {
    const record = jobIn(location.search);
    if (value === "") record.delete(key);
    else record.set(key, value);
    if (value === "own") for (const [name] of key === "chip" ? OWN_CHIP : OWN_LINK) if (!record.has(name)) record.set(name, OWN_AT_FIRST[name]);
    go(record);
  };
  const go = (record) => {
    const url = new URL(location.href);
    url.search = new URLSearchParams(carry(record));
    history.replaceState(history.state, "", url);
    update();
  };

  function fields(record) {
    const valueOf = (name) => record.get(OPTIONS.get(name).key) ?? usual[name] ?? OPTIONS.get(name).default ?? "";
    const one = (name) => {
      const option = OPTIONS.get(name);
      if (!option.choices) return number(option.key, option.label, valueOf(name));
      const own = ["accelerator", "nic"].includes(name) ? [["own", "other: your own numbers"]] : [];
      const options = [...own, ...option.choices];
      return selectField(option.label, { name: option.key, value: valueOf(name), options, onChange: (value) => change(option.key, value) }).box;
    };
    const numbers = [["accelerator", OWN_CHIP], ["nic", OWN_LINK]].flatMap(([name, keys]) =>
      valueOf(name) === "own" ? keys.map(([key]) => number(key, OWN_WORDS[key], record.get(key))) : []);
    return [...MACHINE.map(one), ...numbers, ...WORK.map(one), ...sliders(valueOf)];
  }
  const number = (key, label, value) =>
    field(label, el("input", { name: key, type: "number", min: 0, step: "any", value, on: { change: ({ target }) => change(key, target.value) } }));
  const sliders = (valueOf) => sliderNames.map((name) => {
    const option = OPTIONS.get(name);
    const power = Math.round(Math.log2(Number(valueOf(name)) || 1));
    const told = el("output", {}, String(2 ** power));
    const range = el("input", {
      name: `slider-${option.key}`, type: "range", min: STEPS[name][0], max: STEPS[name][1], step: 1, value: power, "aria-valuetext": String(2 ** power),
      on: {
        input: () => {
          told.value = String(2 ** Number(range.value));
          range.setAttribute("aria-valuetext", told.value);
        },
        change: () => change(option.key, String(2 ** Number(range.value))),
      },
    });
    const made = field(`${option.label}: `, range);
    made.querySelector("label").append(told);
    made.classList.add("yours-slider");
    return made;
  });

  function update() {
    const record = jobIn(location.search);
    const { yours, problems } = readRecord(catalog, record);
    for (const name of LAYOUT) if (!sliderNames.includes(name)) delete yours[name];
    const live = Object.keys(yours).length > 0;
    const began = performance.now();
    const found = live ? journey(catalog, page, yours) : null;
    const counts = showJourney(root, found, catalog);
    const step = found?.step(page);
    const ms = performance.now() - began;
    root.dataset.computedMs = ms.toFixed(1);
    const focused = form.contains(document.activeElement) ? document.activeElement.name : null;
    form.replaceChildren(...fields(record));
    if (focused) form.querySelector(`[name="${focused}"]`)?.focus();
    now.hidden = !live;
    if (!live) {
      tellJob(reference);
      return say(box.open ? "This page shows the reference machine." : "");
    }
    // The tools get the reader's job with the layout of this page.
    const told = new URLSearchParams(reference);
    for (const [key, value] of record) told.set(key, value);
    for (const name of ["nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "microbatch_size", "global_batch", "chunks"]) {
      const { key } = OPTIONS.get(name) ?? { key: name };
      const value = step.choices[name];
      if (value !== null && value !== undefined && (value > 1 || told.has(key))) told.set(key, value);
    }
    tellJob(told.toString());
    const missing = step.error ? ` This page's job cannot be laid out there: ${step.error.message}.` : "";
    const wrong = problems.length ? ` ${problems.join("; ")}.` : "";
    now.replaceChildren(
      el("strong", {}, "This page follows your cluster. "),
      `Underlined values are yours (${counted(counts.values, "value")}, ${counted(counts.charts, "figure")}`,
      counts.turned ? `, ${counted(counts.turned, "sentence")} that ${counts.turned === 1 ? "turns" : "turn"} out differently); ` : "); ",
      "figures of the reference machine say so.",
      `${missing}${wrong} `,
      button("Back to the reference machine", () => go(new URLSearchParams()), { class: "tool-button yours-back" }),
    );
    say(`Recomputed for your cluster: ${counted(counts.values, "value")} and ${counted(counts.charts, "figure")}.`);
  }
  return { box, update };
}

// Links to other pages of the journey carry the job along.
addEventListener("click", ({ target }) => {
  const link = target.closest?.("a[href]");
  const ours = /\/journey\/[a-z-]+\/$/;
  if (!link || link.origin !== location.origin || !ours.test(link.pathname) || !ours.test(location.pathname)) return;
  const record = jobIn(location.search);
  if (link.search && !link.dataset.carries) return;
  link.search = new URLSearchParams(carry(record));
  link.dataset.carries = "1";
}, true);
addEventListener("popstate", () => follow());
