// Back undoes the last change of a tool: each change of its address gets an entry of its own in the
// history. Loaded when a reader first does something.

const ONE_CHANGE_MS = 1000; // typing in a field, or dragging, counts as one change until a longer pause

// The keys whose values differ between two queries.
function differing(before, after) {
  const [one, other] = [before, after].map((query) => new URLSearchParams(query));
  return [...new Set([...one.keys(), ...other.keys()])].filter((key) => one.get(key) !== other.get(key)).join();
}

/** Follows the address until `signal`; `again` rebuilds the tool for the address that a reader goes back to. */
export function undoByBack(signal, again) {
  let [shown, changed, at] = [location.search, "", 0];
  addEventListener("tool-address", (event) => {
    const url = event.detail;
    event.preventDefault();
    const keys = differing(shown, url.search);
    if (!keys) return;
    const same = keys === changed && Date.now() - at < ONE_CHANGE_MS;
    history[same ? "replaceState" : "pushState"](history.state, "", url);
    [shown, changed, at] = [location.search, keys, Date.now()];
  }, { signal });
  const mine = location.pathname;
  addEventListener("popstate", () => {
    if (location.pathname === mine && location.search !== shown) again();
  }, { signal });
}
