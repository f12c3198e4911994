// A service worker that lets pages that were read be read again without a network.
//
// With a network every answer is fresh: stored ones are used only if a request fails. It stores
// this site's own files, as many as fit, and no others. One origin may hold the
// site, previews of changes to it, former versions and other pages of its owner, so the worker answers
// only for its own scope, from a cache named after the scope. Each answer is stored with
// the digest of its address, type and content, and one that does not match is discarded.

const SCOPE = self.registration.scope;
const KEPT = `guide ${SCOPE}`;
const MOST = 400;
const DIGEST = "x-guide-digest";
// Previews are read with a network, and each version has a worker of its own.
const OTHERS = /^(pr-\d+|v\d+(\.\d+)*)(\/|$)/;

function own({ method, url }) {
  return method === "GET" && url.startsWith(SCOPE) && !OTHERS.test(url.slice(SCOPE.length));
}

async function digestOf(url, type, content) {
  const label = new TextEncoder().encode(`${url}\n${type}\n`);
  const whole = new Uint8Array(label.length + content.byteLength);
  whole.set(label);
  whole.set(new Uint8Array(content), label.length);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function keep(request, answer) {
  const content = await answer.arrayBuffer();
  const headers = new Headers(answer.headers);
  headers.set(DIGEST, await digestOf(request.url, headers.get("content-type"), content));
  const kept = await caches.open(KEPT);
  await kept.put(request, new Response(content, { status: answer.status, headers }));
  const requests = await kept.keys();
  await Promise.all(requests.slice(0, Math.max(0, requests.length - MOST)).map((old) => kept.delete(old)));
}

async function known(request) {
  const kept = await caches.open(KEPT);
  const ignoreSearch = request.mode === "navigate";
  for (const stored of await kept.keys(request, { ignoreSearch })) {
    const answer = await kept.match(stored);
    if (!answer) continue;
    const digest = await digestOf(stored.url, answer.headers.get("content-type"), await answer.clone().arrayBuffer());
    if (digest === answer.headers.get(DIGEST)) return answer;
    await kept.delete(stored);
  }
  return null;
}

async function fresh(event) {
  try {
    const answer = await fetch(event.request);
    if (answer.ok && answer.type === "basic") event.waitUntil(keep(event.request, answer.clone()));
    return answer;
  } catch (failure) {
    const kept = await known(event.request);
    if (kept) return kept;
    throw failure;
  }
}

// Earlier workers stored everything in one cache of the origin.
const forget = async () => (await caches.delete("guide"), self.clients.claim());

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(forget()));
self.addEventListener("fetch", (event) => {
  if (own(event.request)) event.respondWith(fresh(event));
});
