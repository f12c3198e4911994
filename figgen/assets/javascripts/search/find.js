// Finds pages for a query: adds up the impacts that figgen/search/index.py computed.
//
// Loaded when a reader opens the search, and so are the pieces of the index that a query needs.

import { asked, stem, words } from "./words.js";

const folder = new URL("../../../search/", import.meta.url);
const loaded = new Map(); // file → its content, or the promise of it
const SHOWN_SECTIONS = 3;
const NEAR = 0.5; // a word that only begins with the typed text, or is spelled slightly differently
const ALSO_NEAR = 0.25; // the same, if the index has the word itself
const MOST_NEAR = 12;

async function load(name) {
  if (!loaded.has(name)) {
    loaded.set(name, fetch(new URL(name, folder), { cache: "no-cache" }).then((answer) => {
      if (!answer.ok) throw new Error(`${answer.status} for ${name}`);
      return answer.json();
    }));
    loaded.get(name).catch(() => loaded.delete(name)); // the next query tries again
  }
  return loaded.get(name);
}

export const begin = () => load("head.json");

// The pieces that may hold words with the prefix `start`, the first `most` of them.
async function range(head, start, most) {
  const after = (word) => head.cuts.filter((cut) => cut <= word).length - 1;
  const first = Math.max(0, after(start));
  const last = Math.min(Math.max(first, after(`${start}\uffff`)), first + most - 1);
  const numbers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return Promise.all(numbers.map((number) => load(`words-${number}.json`)));
}

async function exact(head, word) {
  const number = head.cuts.filter((cut) => cut <= word).length - 1;
  const piece = number < 0 ? {} : await load(`words-${number}.json`);
  return Object.hasOwn(piece, word) ? piece[word] : undefined; // each object has a constructor
}

// Postings of words in the index that are close to a typed one.
async function near(head, typed) {
  const pieces = await range(head, typed, 2);
  const close = closeOf(pieces, typed);
  // Only the first letter must be right: recieve is not in the piece of receive.
  return close.length || typed.length < 4 ? close : closeOf(await range(head, typed[0], Infinity), typed);
}

// In these pieces: longer words, then words with a typo.
function closeOf(pieces, typed) {
  const known = pieces.flatMap((piece) => Object.keys(piece));
  const longer = known.filter((word) => word.startsWith(typed)).sort((a, b) => a.length - b.length);
  const close = longer.length || typed.length < 4 ? longer : known.filter((word) => slips(word, stem(typed)));
  // After a typo within an ending, recomputaton, the longest word that the text begins with.
  if (!close.length) close.push(...known.filter((word) => word.length > 4 && typed.startsWith(word)).slice(-1));
  return close.slice(0, MOST_NEAR).map((word) => pieces.find((piece) => Object.hasOwn(piece, word))[word]);
}

// Whether adding, omitting, changing or swapping one letter turns one word into the other.
function slips(a, b) {
  if (Math.abs(a.length - b.length) > 1 || a[0] !== b[0]) return false;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  const [x, y] = [a.slice(at), b.slice(at)];
  return x.slice(1) === y || x === y.slice(1) || x.slice(1) === y.slice(1)
    || (x[0] === y[1] && x[1] === y[0] && x.slice(2) === y.slice(2));
}

// Adds a word's impacts to a need's; the best of its alternatives counts.
function credit(need, packed, weight) {
  for (let at = 0, number = 0; at < packed.length; at += 2) {
    number += packed[at];
    need.set(number, Math.max(need.get(number) ?? 0, packed[at + 1] * weight));
  }
}

// For each word of the query: record → impact, and how rare the word is.
async function needs(head, text) {
  const { all, meant } = asked(text);
  const typing = /[\p{L}\p{N}]$/u.test(text) ? all.at(-1) : "";
  const found = await Promise.all(meant.map(async (word) => {
    const need = new Map();
    const postings = await exact(head, stem(word));
    if (postings) credit(need, postings, 1);
    if (!postings || (word === typing && /^\p{L}{3,}$/u.test(word))) {
      for (const others of await near(head, word)) credit(need, others, postings ? ALSO_NEAR : NEAR);
    }
    return { word, need, known: need.size > 0 };
  }));
  // Words that the index has in one piece: micro batch, all to all, bubble fraction.
  for (const length of [2, 3]) {
    for (let at = 0; at + length <= all.length; at += 1) {
      const run = all.slice(at, at + length);
      const postings = await exact(head, stem(run.join("")));
      if (!postings) continue;
      const parts = found.filter(({ word }) => run.includes(word));
      if (!parts.length) parts.push(found[found.push({ word: run.join(""), need: new Map(), known: true }) - 1]);
      for (const part of parts) {
        const together = new Map(part.need);
        credit(together, postings, 1);
        for (const [number, impact] of together) part.need.set(number, impact);
      }
    }
  }
  for (const each of found) {
    each.rare = Math.log(1 + head.records.length / (1 + each.need.size));
  }
  return found;
}

// Scores of records and of pages; a page may have one word here and another there.
function scores(head, found) {
  const total = found.reduce((sum, { rare, known }) => sum + (known ? rare : 0), 0) || 1;
  const records = new Map();
  const pages = new Map();
  const add = (map, key, impact, rare) => {
    const sum = map.get(key) ?? { impact: 0, rare: 0 };
    map.set(key, { impact: sum.impact + impact, rare: sum.rare + rare });
  };
  for (const { need, rare } of found) {
    const best = new Map();
    for (const [number, impact] of need) {
      add(records, number, impact, rare);
      const page = head.records[number][0];
      const one = best.get(page) ?? { most: 0, sum: 0 };
      best.set(page, { most: Math.max(one.most, impact), sum: one.sum + impact });
    }
    for (const [page, { most, sum }] of best) {
      add(pages, page, most + Math.min(most, 0.12 * (sum - most)), rare);
    }
  }
  const settle = (map) => new Map([...map].map(([key, { impact, rare }]) => [key, impact * (rare / total) ** 2]));
  return [settle(records), settle(pages)];
}

// Titles that equal the query come first.
function titled(title, meant) {
  const own = [...new Set(words(title))];
  return own.length && own.every((word) => meant.has(word)) ? 1.35 : 1;
}

// The pages for a query, best first: { missing: words of it that the site lacks, count: of all pages found,
// results: [{ page, url, title, score, sections }] }, each with its best sections.
export async function find(text, most = 12) {
  const head = await begin();
  const found = await needs(head, text);
  const [records, pages] = scores(head, found);
  const meant = new Set([...words(text), ...found.map(({ word }) => stem(word))]);
  const sections = new Map();
  for (const [number, score] of records) {
    const [page, , , title] = head.records[number];
    const one = { number, score: score * titled(title || head.pages[page][1], meant) };
    sections.set(page, [...(sections.get(page) ?? []), one]);
  }
  const results = [...pages].map(([page, score]) => {
    const [url, title] = head.pages[page];
    const best = sections.get(page).sort((a, b) => b.score - a.score).slice(0, SHOWN_SECTIONS);
    return { page, url, title, score: score * titled(title, meant) + 0.8 * best[0].score, sections: best };
  });
  results.sort((a, b) => b.score - a.score || a.page - b.page);
  const ready = filled(head, text);
  return {
    missing: ready.length ? [] : found.filter(({ known }) => !known).map(({ word }) => word),
    count: results.length || ready.length,
    results: [...ready, ...results.slice(0, most).map((result) => ({
      ...result, sections: result.sections.map((one) => section(head, result, one)),
    }))].slice(0, most),
  };
}

// Tools that the query fills in, as "70B on 16 H200" does: the front matter of their pages says which
// words stand for which value of which key, and what counts nodes and GPUs.
function filled(head, text) {
  const said = text.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}.,-]*/gu) ?? [];
  return (head.filled ?? []).flatMap(([url, title, { nodes, gpus, each, ...keys }]) => {
    const query = new URLSearchParams();
    const values = Object.entries(keys).map(([key, list]) => [key, new Map(list.split(" ").map((pair) => pair.split("=")))]);
    said.forEach((word, at) => {
      const [key, known] = values.find(([, one]) => one.has(word)) ?? [];
      if (key) query.set(key, known.get(word));
      const before = said[at - 1]?.replaceAll(",", "");
      const count = /^\d{1,7}x?$/.test(before) ? parseInt(before, 10) : 0;
      if (!count) return;
      if (nodes.split(" ").includes(word)) query.set("nodes", count);
      else if (!query.has("nodes") && (key === "chip" || gpus.split(" ").includes(word))) {
        query.set("nodes", count % each ? 1 : count / each);
        if (count % each && count < each) query.set("gpus", count);
      }
    });
    if (!query.has("model") || query.size < 2) return [];
    const own = [...query].map(([key, value]) => `${key} ${value}`).join(", ");
    const address = `${url}?${query}`;
    const page = head.pages.findIndex(([one]) => one === url);
    return [{ page, url: address, title, score: Infinity, sections: [{ score: Infinity, kind: "page", title: `${title}: ${own}`, place: 0, url: address }] }];
  });
}

function section(head, { page, url, title }, { number, score }) {
  const [, kind, anchor, own] = head.records[number];
  const first = head.records.findIndex(([of]) => of === page);
  return {
    score, kind: head.kinds[kind], title: own || title, place: number - first,
    url: anchor ? `${url}#${anchor}` : url,
  };
}

// The texts of a page's records, in their order.
export const texts = (page) => load(`text-${page}.json`);
