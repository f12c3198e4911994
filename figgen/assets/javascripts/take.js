// Exports of a figure beyond its files: a PNG, a page to explore, and texts to copy.
// It is loaded when a reader opens "Data, files and citation".

const PNG_SCALE = 3; // 288 dpi

const named = (href) => new URL(href, document.baseURI).pathname.split("/").at(-1).replace(/\..*$/, "");

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function fetched(href) {
  const answer = await fetch(new URL(href, document.baseURI));
  if (!answer.ok) throw new Error(`${answer.status} for ${href}`);
  return answer.text();
}

// The picture as a file, in the page's current colors.
async function coloured(href) {
  const drawing = new DOMParser().parseFromString(await fetched(href), "image/svg+xml").documentElement;
  const style = getComputedStyle(document.body);
  const names = new Set(drawing.outerHTML.match(/--fig-[\w-]+/g));
  for (const name of names) {
    const colour = style.getPropertyValue(name).trim();
    if (colour) drawing.style.setProperty(name, colour);
  }
  return drawing;
}

async function png(href) {
  const drawing = await coloured(href);
  const [, , width, height] = drawing.getAttribute("viewBox").split(/[\s,]+/).map(Number);
  drawing.setAttribute("width", PNG_SCALE * width);
  drawing.setAttribute("height", PNG_SCALE * height);
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([drawing.outerHTML], { type: "image/svg+xml" }));
  try {
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(PNG_SCALE * width);
    canvas.height = Math.round(PNG_SCALE * height);
    const pen = canvas.getContext("2d");
    pen.fillStyle = getComputedStyle(document.body).getPropertyValue("--fig-paper");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

const inHtml = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const inScript = (value) => JSON.stringify(value).replaceAll("<", "\\u003c");

// A single file that includes Plotly and needs no network.
async function plotlyPage(href, library, inked, title, cited) {
  const [code, text] = await Promise.all([fetched(library), fetched(href)]);
  const style = getComputedStyle(document.body);
  const figure = inked(JSON.parse(text), style);
  const [paper, ink] = ["--fig-paper", "--fig-ink"].map((name) => style.getPropertyValue(name).trim());
  const look = `margin:1rem;background:${paper};color:${ink};font:14px system-ui,sans-serif`;
  return new Blob([
    `<!doctype html>\n<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">`,
    `<title>${inHtml(title)}</title><body style="${look}"><div id="plot"></div><p>${inHtml(cited)}</p>`,
    "<script>", code, `<\/script><script>const figure = ${inScript(figure)};`,
    "figure.config.responsive = true;Plotly.newPlot(\"plot\", figure);<\/script></body></html>\n",
  ], { type: "text/html" });
}

/** Complete an opened box of downloads; `inked` fills the page's colors into a Plotly figure. */
export function offer(box, library, inked) {
  const svg = box.querySelector("a[download][href$='.svg']"), cite = box.querySelector("p.fig-cite");
  if (!svg || !cite || box.querySelector(".fig-copies")) return;
  const name = named(svg.href), figure = box.closest("figure");
  const panel = box.closest(".fig-panel") ?? figure;
  const title = figure.querySelector(".fig-number").textContent;
  const alt = panel.querySelector("[role=img], table, pre")?.ariaLabel ?? "";
  const link = cite.querySelector("a");
  // A site without an address is cited by where it is read.
  const address = new URL(link.textContent.replace(/#.*/, `#${name}`), location).href;
  const cited = cite.textContent.replace(link.textContent, address);

  const files = svg.parentElement;
  const file = (text, ending, make) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fig-file";
    button.textContent = text;
    button.addEventListener("click", async () => {
      if (button.ariaBusy === "true") return;
      button.ariaBusy = "true";
      try {
        save(await make(), `${name}.${ending}`);
        button.textContent = text;
      } catch (error) {
        button.textContent = `${text} (failed, try again)`;
        console.warn(error);
      }
      button.ariaBusy = "false";
    });
    files.append(" · ", button);
  };
  file("PNG", "png", () => png(svg.getAttribute("href")));
  const plotly = panel.querySelector(".fig-explore")?.dataset.plotly;
  if (plotly) file("Plotly HTML", "html", () => plotlyPage(plotly, library, inked, title, cited));

  const copies = document.createElement("p"), said = document.createElement("output");
  copies.className = "fig-copies";
  const copy = (text, label) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fig-button";
    button.textContent = text;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(label);
        said.value = "Copied";
      } catch {
        said.value = label; // to be copied by hand
      }
    });
    copies.append(button, " ");
  };
  const [, , width, height] = (panel.querySelector("svg[viewBox]")?.getAttribute("viewBox") ?? "0 0 720 400").split(" ").map(Math.ceil);
  const picture = new URL(svg.getAttribute("href"), address);
  copy("Copy citation", cited);
  copy("Copy address", address);
  copy("Copy iframe", `<iframe src="${picture}" title="${inHtml(`${title}. ${alt}`)}" width="${width}" height="${height}" style="border:0;max-width:100%"></iframe>\n<p><a href="${inHtml(address)}">${inHtml(cited.split(". Computed")[0])}</a></p>`);
  copies.append(said);
  cite.after(copies);
}
