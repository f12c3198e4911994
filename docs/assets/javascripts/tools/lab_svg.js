// A drawing as a standalone file: its colors are written into it.

const SHOWN = ["fill", "stroke", "stroke-width", "fill-opacity", "font-size", "font-weight", "text-anchor", "stroke-dasharray", "opacity"];

/** The SVG's markup with the styles that a reader sees, and the page's sans serif for text. */
export function embedded(svg) {
  const copy = svg.cloneNode(true);
  const [shown, made] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
  shown.forEach((element, at) => {
    const style = getComputedStyle(element);
    made[at].setAttribute("style", SHOWN.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    made[at].removeAttribute("class");
  });
  const paper = getComputedStyle(svg).getPropertyValue("--md-default-bg-color") || "white";
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("style", `background:${paper.trim()};font-family:sans-serif`);
  copy.removeAttribute("class");
  return new XMLSerializer().serializeToString(copy);
}
