// The words of a query, split as figgen/search/words.py splits the pages; a test compares the two.

const CHAIN = /[\p{L}\p{N}]+(?:[._'’–+/,-][\p{L}\p{N}]+)*/gu;
const NUMBER = /^\p{Nd}[\p{Nd}.,]*\p{L}{0,3}$/u;
const CASE = /(?<=[a-z]{2})(?=[A-Z][a-z]{2})/;
const JOINT = /[._'’–+/,-]/;
const NAMED = /^(\p{L}{3,})\p{Nd}+$/u;
const STOP = new Set((
  "a an and are as at be been but by can do does for from had has have how i if in into is it "
  + "its many may me more most much my no not of on one only or our should so some than that the "
  + "their them then there these they this those to us was we were what when where which while "
  + "who whose why will with would you your"
).split(" "));
const GREEK = "alpha beta gamma delta epsilon zeta eta theta iota kappa lamda mu nu xi omicron pi rho "
  + "sigma sigma tau upsilon phi chi psi omega";
const NAMES = new Map(GREEK.split(" ").map((name, at) => [String.fromCodePoint(0x3b1 + at), name]));

// Steps 2 to 4 of Porter's algorithm: endings and what takes their place.
const SECOND = pairs("ational-ate tional-tion enci-ence anci-ance izer-ize abli-able alli-al entli-ent eli-e "
  + "ousli-ous ization-ize ation-ate ator-ate alism-al iveness-ive fulness-ful ousness-ous aliti-al "
  + "iviti-ive biliti-ble");
const THIRD = pairs("icate-ic ative- alize-al iciti-ic ical-ic ful- ness-");
const FOURTH = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize".split(" ");

function pairs(text) {
  return text.split(" ").map((pair) => pair.split("-"));
}

const consonant = (word, at) =>
  !"aeiou".includes(word[at]) && !(word[at] === "y" && at > 0 && consonant(word, at - 1));
// How often vowels are followed by consonants.
function measure(word) {
  const shape = [...word].map((_, at) => (consonant(word, at) ? "c" : "v")).join("");
  return (shape.match(/v+c/g) ?? []).length;
}
const vowel = (word) => [...word].some((_, at) => !consonant(word, at));
const doubled = (word) => /(?:bb|dd|ff|gg|mm|nn|pp|rr|tt)$/.test(word);
const short = (word) => {
  const end = word.length - 1;
  return end > 1 && consonant(word, end) && !consonant(word, end - 1) && consonant(word, end - 2)
    && !"wxy".includes(word[end]);
};

function plain(word) {
  if (word.endsWith("sses") || word.endsWith("ies")) return word.slice(0, -2);
  return word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word;
}

function past(word) {
  if (word.endsWith("eed")) return measure(word.slice(0, -3)) > 0 ? word.slice(0, -1) : word;
  const ending = ["ed", "ing"].find((end) => word.endsWith(end));
  if (!ending || !vowel(word.slice(0, -ending.length))) return word;
  const rest = word.slice(0, -ending.length);
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (doubled(rest)) return rest.slice(0, -1);
  return measure(rest) === 1 && short(rest) ? `${rest}e` : rest;
}

function replaced(word, table) {
  const found = table.filter(([end]) => word.endsWith(end)).sort((a, b) => b[0].length - a[0].length)[0];
  if (!found) return word;
  const rest = word.slice(0, -found[0].length);
  return measure(rest) > 0 ? rest + found[1] : word;
}

function stripped(word) {
  const ending = FOURTH.filter((end) => word.endsWith(end)).sort((a, b) => b.length - a.length)[0];
  if (!ending) return word;
  const rest = word.slice(0, -ending.length);
  return measure(rest) > 1 && (ending !== "ion" || /[st]$/.test(rest)) ? rest : word;
}

function tidied(word) {
  const rest = word.slice(0, -1);
  if (word.endsWith("e") && (measure(rest) > 1 || (measure(rest) === 1 && !short(rest)))) word = rest;
  return word.endsWith("ll") && measure(word.slice(0, -1)) > 1 ? word.slice(0, -1) : word;
}

// The word without its inflection (Porter 1980), British spellings like American ones.
export function stem(word) {
  if (/^modell?ers?$/.test(word)) return "modeler";
  if (!/^[a-z]{3,}$/.test(word)) return word;
  word = word.replace(/(?<=[a-z]{4})is(?=(?:e|ed|es|ing|ations?|ers?)$)/, "iz")
    .replace(/(?<=[a-z]{3})our(?=(?:s|ed|ing|al|ly)?$)/, "or");
  let found = past(plain(word));
  if (found.endsWith("y") && vowel(found.slice(0, -1))) found = `${found.slice(0, -1)}i`;
  return tidied(stripped(replaced(replaced(found, SECOND), THIRD)));
}

// The plain pieces of each chain of letters and digits, and the same in one piece.
export function pieces(text) {
  const found = [];
  for (const [chain] of text.normalize("NFKC").matchAll(CHAIN)) {
    if (NUMBER.test(chain)) {
      found.push({ parts: [chain.replaceAll(",", "").toLowerCase()], whole: [] });
      continue;
    }
    const split = chain.split(JOINT).map((part) => part.split(CASE));
    const parts = split.flat().map((part) => part.toLowerCase());
    const whole = split.filter((part) => part.length > 1).map((part) => part.join("").toLowerCase());
    if (split.length > 1 && !/[/,.]/.test(chain)) whole.push(split.flat().join("").toLowerCase());
    whole.push(...[...parts, ...whole].flatMap((part) => NAMED.exec(part)?.[1] ?? []));
    whole.push(...[...parts, ...whole].flatMap((part) => NAMES.get(part) ?? []));
    found.push({ parts, whole });
  }
  return found;
}

const kept = (word) => word && !STOP.has(word);

// Every word of a text as the index keeps it.
export function words(text) {
  return pieces(text).flatMap(({ parts, whole }) => [...parts, ...whole]).filter(kept).map(stem);
}

// The terms of a query in order: plain words as typed.
export function asked(text) {
  const all = pieces(text).flatMap(({ parts }) => parts);
  const meant = all.filter(kept);
  return { all, meant };
}
