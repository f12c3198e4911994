// Calls and conditions as pages write them, such as rung(6).total_bytes < 0.9 * rung(6).capacity_bytes,
// read and computed; mirrors figgen.values and figgen.markdown.claims. Pure.

const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([A-Za-z_]\w*)|"([^"]*)"|'([^']*)'|(<=|>=|[-<>+*().,=]))/gy;

function tokensOf(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.trimEnd().length) {
    const match = TOKEN.exec(text);
    if (!match) throw new SyntaxError(text);
    const [, number, name, double, single, sign] = match;
    found.push(number !== undefined ? { number: Number(number) } : name ? { name } : sign ? { sign } : { text: double ?? single });
  }
  return found;
}

const COMPARE = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b };

/** A number that a cluster does not have, since it cannot carry out the job. */
class Missing extends Error {}

class Reader {
  constructor(text, functions) {
    Object.assign(this, { tokens: tokensOf(text), at: 0, functions });
  }
  take(sign) {
    if (this.tokens[this.at]?.sign !== sign) return false;
    this.at += 1;
    return true;
  }
  condition() {
    let holds = this.compared();
    while (this.tokens[this.at]?.name === "and") {
      this.at += 1;
      holds = this.compared() && holds;
    }
    return holds;
  }
  compared() {
    let [holds, left] = [true, this.side()];
    for (let sign = this.tokens[this.at]?.sign; sign in COMPARE; sign = this.tokens[this.at]?.sign) {
      this.at += 1;
      const right = this.side();
      holds = COMPARE[sign](left, right) && holds;
      left = right;
    }
    return holds;
  }
  side() {
    let sum = this.product();
    while (this.take("+")) sum += this.product();
    return sum;
  }
  product() {
    let found = this.value();
    while (this.take("*")) found *= this.value();
    return found;
  }
  value() {
    const token = this.tokens[this.at++];
    if (token.number !== undefined) return token.number;
    if (token.text !== undefined) return token.text;
    const given = [];
    if (!this.take("(")) throw new SyntaxError(token.name);
    while (!this.take(")")) {
      given.push(this.value());
      this.take(",");
    }
    const found = this.functions[token.name](...given);
    const taken = this.take(".") ? found[this.tokens[this.at++].name] : found;
    if (taken === undefined || Number.isNaN(taken)) throw new Missing(token.name);
    return taken;
  }
}

function unlessMissing(compute) {
  try {
    return compute();
  } catch (error) {
    if (error instanceof Missing) return null;
    throw error;
  }
}

/** The value of a call, null where there is none; `functions` are what it may call, by name. */
export const valueOf = (text, functions) => unlessMissing(() => new Reader(text, functions).value());

/** Whether a condition holds, null where that cannot be computed. */
export const holds = (text, functions) => unlessMissing(() => new Reader(text, functions).condition());
