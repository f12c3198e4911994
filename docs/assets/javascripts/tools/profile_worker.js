// Reads traces and snapshots in a worker, so that the page never waits.

import { InputError } from "../engine/errors.js";
import { readFiles } from "./profile_files.js";

addEventListener("message", async ({ data: { files, against, device } }) => {
  try {
    postMessage({ found: await readFiles(files, { against, device, tell: (progress) => postMessage({ progress }) }) });
  } catch (error) {
    const said = error instanceof InputError ? error.message : `the browser gave up: ${error.message}`;
    postMessage({ error: said });
  }
});
