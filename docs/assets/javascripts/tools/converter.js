// The bandwidth converter: what a collective's measured time and a data sheet's rate mean.
// Everything follows from the fields, which are stored in the address.

import { InputError } from "../engine/errors.js";
import { bringBox } from "./bring.js";
import { FIRST, collective, rates, waysOf } from "./converter_model.js";
import { el, field, liveRegion, mountTool, released, selectField } from "./dom.js";
import { converterOf } from "./job_addresses.js";
import { carry } from "./job_carried.js";
import { tellJob } from "./job_record.js";
import { addressWriter } from "./address.js";
import { choice, parseQuery, readAddress, text, toQuery } from "./state.js";

const OPTIONS = {
  known: [["time", "time"], ["algbw", "algbw"], ["busbw", "busbw"]],
  ways: [["two", "both directions"], ["one", "per direction"]],
  zeros: [["sparse", "with 2:4 sparsity"], ["dense", "dense"]],
};

/** Builds the tool in `root`; `busbw` has the formula of each collective's bus bandwidth. */
async function build(root, signal, { busbw }) {
  const options = { collective: Object.keys(busbw).map((name) => [name, name]), ...OPTIONS };
  const kind = ([key, first]) =>
    [key, options[key] ? choice(first, options[key].map(([name]) => name)) : text(first, () => {})];
  const schema = Object.fromEntries(Object.entries(FIRST).map(kind));
  const { given, problems, job } = await readAddress(location.search, schema, (query, job) => ({ job, ...parseQuery(schema, query) }));
  const first = { ...FIRST, ...converterOf(job) };
  const state = { ...first, ...given };
  tellJob(job);
  const writeAddress = addressWriter(signal);
  let line = null; // writes a row's worked line; loads after the first answer
  const { region, say } = liveRegion();
  const inputs = new Map();

  const typed = (key, label, hint) => {
    const input = el("input", {
      type: "text", name: key, autocomplete: "off", spellcheck: "false", value: state[key],
      on: { input: () => change(key, input.value) },
    });
    inputs.set(key, input);
    return field(label, input, hint);
  };
  const chosen = (key, label) => {
    const { box, select } = selectField(label, { name: key, value: key === "ways" ? waysOf(state) : state[key], options: options[key], onChange: (value) => change(key, value) });
    inputs.set(key, select);
    return box;
  };
  const out = (name) => el("div", { class: "converter-out", role: "group", "aria-label": name });
  const [measured, link, peak] = ["Measured collective", "Rate of a link", "Peak of a chip"].map(out);
  const part = (title, fields, result) =>
    el("section", { class: "tool-section converter-part" }, el("h2", {}, title),
      el("form", { class: "tool-form", "aria-label": title, on: { submit: (event) => event.preventDefault() } },
        el("fieldset", { "aria-label": title }, fields)), result);
  const parts = [
    part("A collective that was measured", [
      chosen("collective", "Collective"),
      typed("ranks", "Ranks"),
      typed("bytes", "Largest buffer of a rank", "such as 8 GiB or 16 GB"),
      chosen("known", "What was measured"),
      typed("time", "Time", "such as 43 ms"),
      typed("algbw", "algbw", "such as 200 GB/s"),
      typed("busbw", "busbw", "such as 375 GB/s"),
      typed("width", "Ranks on a node"),
      typed("ports", "Network ports of a node"),
      typed("line", "Line rate of a port", "in GB/s or Gb/s"),
    ], measured),
    part("A link on a datasheet", [
      typed("link", "Bandwidth", "in GB/s or Gb/s"),
      chosen("ways", "Counted"),
    ], link),
    part("A peak on a datasheet", [
      typed("peak", "Peak", "such as 3958 TFLOP/s"),
      chosen("zeros", "Counted"),
    ], peak),
  ];
  const messages = problems.map((text) => el("div", { class: "tool-message is-warning" }, el("p", {}, `In the address, ${text}.`)));
  const brought = bringBox(async ({ text, isLast }) => {
    const { readBrought } = await import("./converter_log.js");
    const { typed, shown } = await readBrought(text, state, options.collective, job);
    if (!isLast()) return false;
    for (const key in typed) inputs.get(key).value = state[key] = typed[key];
    if (typed) change("bytes", typed.bytes);
    return shown;
  }, signal, { summary: "Paste a log or a speed: nccl-tests, training steps, 7000 tokens/s, out of memory", label: "Log or speed" });
  const answered = el("p", { class: "tool-sentence" });
  root.replaceChildren(answered, ...messages, brought.element, ...parts, region);

  function change(key, value) {
    state[key] = value;
    inputs.get("ways").value = waysOf(state);
    show(parts.findIndex((one) => one.contains(inputs.get(key))));
    writeAddress(new URLSearchParams([...new URLSearchParams(toQuery(schema, state, first)), ...carry(job)]));
  }

  // Screen readers announce the part that changed.
  function show(part = 0) {
    for (const [key] of OPTIONS.known) inputs.get(key).closest(".tool-field").hidden = key !== state.known;
    const told = [
      answer(measured, () => {
        answered.textContent = "\u00a0"; // keeps the line's height without an answer
        const { rows, said } = collective(state, busbw[state.collective]);
        answered.textContent = said;
        return rows;
      }),
      answer(link, () => rates.link(state)),
      answer(peak, () => rates.peak(state)),
    ];
    say(told[part]);
  }

  // Fills `box` with rows of { label, texts, formula, given }, or an error; returns text for screen readers.
  function answer(box, found) {
    for (const input of box.closest("section").querySelectorAll("input")) input.removeAttribute("aria-invalid");
    try {
      const rows = found();
      box.replaceChildren(table(rows, line));
      return rows.map(({ label, texts }) => `${label} ${texts.join(", ")}`).join("; ");
    } catch (error) {
      if (!(error instanceof InputError)) throw error;
      inputs.get(error.key)?.setAttribute("aria-invalid", "true");
      box.replaceChildren(el("div", { class: "tool-message is-bad" }, el("p", {}, `${error.message}.`)));
      return error.message;
    }
  }
  show();
  const explain = async () => {
    const [{ notes }, lines] = await Promise.all([import("../formula-notes.js"), import("./converter_lines.js")]);
    await released();
    line = (formula, given) => lines.line(notes, formula, given);
    if (!signal.aborted) show();
  };
  explain();
}

const table = (rows, line) =>
  el("dl", { class: "converter-rows" },
    rows.map(({ label, texts, formula, given }) => [
      el("dt", {}, label),
      el("dd", {}, texts.map((text) => el("strong", {}, text)), formula && line ? line(formula, given) : null),
    ]));

mountTool("#converter", build);
