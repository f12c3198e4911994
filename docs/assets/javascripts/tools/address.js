// The address of a tool's page, which follows what its reader chooses.

/**
 * `write(query)`: puts `query` into the address of the tool's page soon, until `signal`; back.js gives
 * a reader's changes an entry of their own in the history instead.
 */
export function addressWriter(signal) {
  const mine = location.pathname;
  let waiting = 0;
  const write = (query) => {
    // When a reader goes back, the address changes before the page does.
    if (location.pathname !== mine) return;
    const url = new URL(location.href);
    url.search = query;
    // The theme stores the scroll position in the state.
    if (dispatchEvent(new CustomEvent("tool-address", { detail: url, cancelable: true })) && url.href !== location.href)
      history.replaceState(history.state, "", url);
  };
  signal.addEventListener("abort", () => clearTimeout(waiting));
  return (query) => {
    clearTimeout(waiting);
    // Browsers limit how often an address may be rewritten.
    waiting = setTimeout(write, 150, query);
  };
}
