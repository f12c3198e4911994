// Downloads, and copying to the clipboard.

import { el } from "./dom.js";

/** Downloads a file. */
export function download(name, content, type) {
  const address = URL.createObjectURL(
    content instanceof Blob ? content : new Blob([content], { type }),
  );
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Copies `text` to the clipboard; returns false if the browser does not allow it. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Shows a command in `box` without line breaks inside options, where a browser may break at hyphens. */
export const showCommand = (box, text) =>
  box.replaceChildren(...text.split(/(--\w[\w-]*)/).map((part, at) => (at % 2 ? el("span", { class: "fig-keep" }, part) : part)));
