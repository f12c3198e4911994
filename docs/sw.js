// A service worker that lets every page that was read be read again without a network.
//
// With a network every answer is fresh: what is kept is used only where asking fails. It keeps
// this site's own files, as many as fit, and nothing of anybody else's.

const KEPT = "guide";
const MOST = 400;

const own = (request) => request.method === "GET" && new URL(request.url).origin === location.origin;

async function keep(request, answer) {
  const kept = await caches.open(KEPT);
  await kept.put(request, answer);
  const requests = await kept.keys();
  await Promise.all(requests.slice(0, Math.max(0, requests.length - MOST)).map((old) => kept.delete(old)));
}

async function fresh(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.ok && answer.type === "basic") event.waitUntil(keep(event.request, answer.clone()));
    return answer;
  } catch (failure) {
    const kept = await caches.match(event.request, { ignoreSearch: event.request.mode === "navigate" });
    if (kept) return kept;
    throw failure;
  }
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  if (own(event.request)) event.respondWith(fresh(event));
});
