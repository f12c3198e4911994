// The script of the theme's pages: the palette, links that swap pages without a reload, the position in
// the table of contents, copying of code. Everything can be read without it.
//
// The theme's own bundle would be fourteen times as large and take a phone a tenth of a second.

(() => {
  const root = document.documentElement;
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const listeners = [];
  const HEADER_PX = 72;
  root.classList.replace("no-js", "js");

  // The palette: the reader's choice, or else the system's.
  const palettes = all("form[data-md-component=palette] input");
  function paint(index) {
    const { body } = document, colours = {}, fresh = [];
    for (const kind of ["scheme", "primary", "accent"]) {
      const name = `data-md-color-${kind}`;
      colours[kind] = palettes[index].getAttribute(name);
      if (body.getAttribute(name) !== colours[kind]) fresh.push([name, colours[kind]]);
    }
    palettes.forEach((input, at) => {
      input.checked = at === index;
      input.nextElementSibling.hidden = at !== index;
    });
    if (!fresh.length) return colours; // unchanged: computes no styles
    body.setAttribute("data-md-color-switching", ""); // no transitions
    for (const [name, colour] of fresh) body.setAttribute(name, colour);
    void getComputedStyle(body).color;
    requestAnimationFrame(() => body.removeAttribute("data-md-color-switching"));
    return colours;
  }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => __md_get("__palette")?.index;
  const preferred = () => palettes.findIndex((input) => matchMedia(input.dataset.mdColorMedia).matches);
  if (palettes.length) {
    paint(kept() ?? Math.max(0, preferred()));
    palettes.forEach((input, index) => {
      input.addEventListener("change", () => __md_set("__palette", { index, color: paint(index) }));
    });
    dark.addEventListener("change", () => kept() ?? paint(Math.max(0, preferred())));
  }

  // The table of contents follows the reader; the header shows the page's title once that is out of view.
  let places = [];
  function follow() {
    const passed = places.filter(({ heading }) => heading.getBoundingClientRect().top < HEADER_PX + 24);
    places.forEach(({ link }, at) => {
      link.classList.toggle("md-nav__link--passed", at < passed.length - 1);
      link.classList.toggle("md-nav__link--active", at === passed.length - 1);
    });
    const active = passed.at(-1)?.link;
    const box = active?.closest(".md-sidebar__scrollwrap");
    if (box) {
      const off = active.getBoundingClientRect().top - box.getBoundingClientRect().top;
      if (off < 0 || off > box.clientHeight - 40) box.scrollTop += off - box.clientHeight / 2;
    }
    const title = one("article h1")?.getBoundingClientRect();
    one(".md-header__title")?.classList.toggle("md-header__title--active", Boolean(title) && title.bottom < HEADER_PX);
    one(".md-header")?.classList.toggle("md-header--shadow", scrollY > 8);
  }
  let last = 0, waiting;
  addEventListener("scroll", () => {
    waiting ??= requestAnimationFrame(() => {
      waiting = undefined;
      const top = one(".md-top");
      if (top) top.hidden = scrollY > last || scrollY < innerHeight / 2;
      last = scrollY;
      follow();
    });
  }, { passive: true });

  function tell(text) {
    const dialog = one(".md-dialog");
    one(".md-dialog__inner", dialog).textContent = text;
    dialog.classList.add("md-dialog--active");
    setTimeout(() => dialog.classList.remove("md-dialog--active"), 2000);
  }
  function copier(code) {
    const pre = code.parentElement;
    if (one(".md-code__nav", pre)) return;
    const nav = document.createElement("div"), button = document.createElement("button");
    nav.className = "md-code__nav";
    button.className = "md-code__button";
    button.type = "button";
    button.dataset.mdType = "copy";
    button.title = "Copy to clipboard";
    button.addEventListener("click", () => {
      navigator.clipboard.writeText(code.innerText.trimEnd()).then(() => tell("Copied to clipboard"), () => {});
    });
    nav.append(button);
    pre.prepend(nav);
  }

  // On a tool's page, a second link skips the line of tools and the answer too, to the first field of the form.
  function skipToForm() {
    const tool = one("article .tool"), skip = one(".md-skip");
    if (!tool || !skip) return;
    const link = skip.cloneNode();
    link.href = `#${tool.id}`;
    link.textContent = "Skip to the form";
    link.addEventListener("click", (event) => {
      const fields = [".tool-form select, .tool-form input", "input, select"].flatMap((selector) => all(selector, tool));
      const field = fields.find((each) => each.checkVisibility());
      if (!field) return; // the tool is loading
      event.preventDefault();
      field.focus();
    });
    skip.after(link);
  }

  function begin() {
    skipToForm();
    places = all(".md-sidebar--secondary [href*='#']").flatMap((link) => {
      const heading = document.getElementById(decodeURIComponent(link.hash.slice(1)));
      return heading ? [{ link, heading }] : [];
    });
    all("pre > code").forEach(copier);
    const here = one(".md-sidebar--primary .md-nav__link--active"), box = here?.closest(".md-sidebar__scrollwrap");
    if (box?.clientHeight) box.scrollTop = here.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 2;
    requestAnimationFrame(follow);
    listeners.forEach((listen) => listen(document));
  }
  window.document$ = {
    subscribe(listen) {
      listeners.push(listen);
      listen(document);
    },
  };

  // Show a different page of the site: only the parts that differ are replaced.
  const SAME = "[rel=stylesheet][href], meta[name=description], link[rel=canonical], link[rel=prev], link[rel=next]";
  const scrolled = new Map();
  let shown = location.pathname, turn = 0;
  async function go(url, back) {
    const mine = ++turn;
    let next;
    try {
      const answer = await fetch(url);
      if (!answer.ok || !answer.headers.get("content-type")?.includes("html")) throw new Error(answer.status);
      next = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      if (mine === turn) location.assign(url);
      return;
    }
    if (mine !== turn) return; // the reader has gone to a different page
    const key = (element) => element.rel === "stylesheet" ? element.getAttribute("href").split("/").pop() : "";
    const old = all(SAME, document.head), fresh = all(SAME, next.head);
    const sheets = new Map(old.map((element) => [key(element), element]));
    await Promise.all(fresh.map((element) => {
      if (key(element) && sheets.has(key(element))) return sheets.delete(key(element));
      const added = document.importNode(element, true);
      if (element.hasAttribute("href")) added.href = new URL(element.getAttribute("href"), url);
      const ready = key(element) && new Promise((done) => { added.onload = added.onerror = done; });
      document.head.append(added);
      return ready;
    }));
    if (mine !== turn) return;
    // The address changes together with the content, because links that are still there are relative to it.
    if (!back) {
      scrolled.set(shown, scrollY);
      history.pushState(null, "", url);
    }
    shown = location.pathname;
    for (const element of old) if (!key(element) || sheets.has(key(element))) element.remove();
    document.title = next.title;
    for (const name of ["skip", "header-topic", "container"]) {
      const part = one(`[data-md-component=${name}]`), other = one(`[data-md-component=${name}]`, next);
      if (part && other) part.replaceWith(document.adoptNode(other));
    }
    one("#__drawer").checked = false;
    for (const script of all("[data-md-component=container] script[src]")) {
      const again = document.createElement("script");
      for (const { name, value } of script.attributes) again.setAttribute(name, value);
      script.replaceWith(again);
    }
    scrollTo(0, (back && scrolled.get(shown)) || 0);
    if (location.hash) location.replace(location.hash); // to its target, so that :target applies
    begin();
  }
  const scope = new URL(__md_scope);
  addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (event.target.closest?.(".md-top")) scrollTo({ top: 0 });
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const url = new URL(link.href);
    if (link.target || link.download || link.hasAttribute("download") || url.origin !== scope.origin) return;
    if (!url.pathname.startsWith(scope.pathname) || !url.pathname.endsWith("/") || url.pathname === location.pathname) return;
    event.preventDefault();
    go(url.href, false);
  });
  addEventListener("popstate", () => {
    if (location.pathname !== shown) go(location.href, true);
    else turn += 1;
  });
  // The header and the icon stay, so their links must not depend on the page that they came with.
  for (const link of all(".md-header a[href], link[rel=icon]")) link.setAttribute("href", link.href);

  const KEYS = { p: "prev", ",": "prev", n: "next", ".": "next" };
  addEventListener("keydown", (event) => {
    const { target, key } = event;
    if (event.metaKey || event.ctrlKey || event.altKey || target.closest?.("input, select, textarea, dialog, [contenteditable]")) return;
    if (key === "Enter" && target.localName === "label") target.click();
    if (target !== document.body && target.localName !== "a") return;
    const way = one(`link[rel=${KEYS[key]}]`);
    if (way) go(way.href, false);
  });
  // Unfold everything for print.
  addEventListener("beforeprint", () => all("article details:not([open])").forEach((box) => {
    box.open = true;
    addEventListener("afterprint", () => { box.open = false; }, { once: true });
  }));
  // Pages that were read are kept for days for use without a network. A preview of a change must neither
  // stay on a reader's machine nor take space from the site's pages.
  const worker = new URL("../../sw.js", document.currentScript.src);
  if (location.protocol === "https:" && !/\/pr-\d+\/sw\.js$/.test(worker.pathname)) {
    navigator.serviceWorker?.register(worker).catch(() => {});
  }
  begin();
})();
