// Live rows, the age of what is shown, and a few keys. Every page can be read without this.
"use strict";
(() => {
  const age = document.getElementById("age");
  const live = "live" in document.body.dataset;
  let taken = Number(age.dataset.taken); // when the cluster was last looked at, by this machine's clock once the stream runs
  let fault = "";
  let polling = 0;
  const staleAfter = 10000;

  // An element of the page takes the place of its successor only where they differ, so that what is selected or has the focus stays.
  function swap(region, html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html; // from this server's templates, which escape
    const before = region.querySelectorAll("tr[id]");
    const after = new Map([...fresh.content.querySelectorAll("tr[id]")].map((row) => [row.id, row]));
    const sameRows = before.length > 0 && before.length === after.size && [...before].every((row, i) => row.id === [...after.keys()][i]);
    if (!sameRows || region.dataset.whole !== outside(fresh.content)) {
      const old = new Map([...before].map((row) => [row.id, row.outerHTML]));
      region.replaceChildren(fresh.content);
      for (const row of region.querySelectorAll("tr[id]")) if (old.has(row.id) && old.get(row.id) !== row.outerHTML) mark(row);
      region.dataset.whole = outside(region);
      return;
    }
    for (const row of before) {
      const next = after.get(row.id);
      if (!row.isEqualNode(next)) {
        row.replaceWith(next);
        mark(next);
      }
    }
  }

  // outside is a region without its rows.
  function outside(root) {
    const copy = root.cloneNode(true);
    copy.querySelectorAll("tr[id]").forEach((row) => row.remove());
    const box = document.createElement("div");
    box.append(...copy.childNodes);
    return box.innerHTML.replace(/\s+/g, " ");
  }

  function mark(row) {
    row.classList.add("changed");
    setTimeout(() => row.classList.remove("changed"), 1600);
  }

  function region(name) {
    return document.querySelector('[data-region="' + CSS.escape(name) + '"]');
  }

  function tick() {
    const seconds = Math.max(0, Math.round((Date.now() - taken) / 1000));
    const stale = live && (fault !== "" || Date.now() - taken > staleAfter);
    age.classList.toggle("stale", stale);
    age.title = fault;
    if (stale) age.textContent = "stale: " + seconds + " s old";
    else age.textContent = live && document.body.dataset.live === "ready" ? "live" : seconds < 2 ? "now" : seconds + " s ago";
  }

  function seen() {
    taken = Date.now();
    fault = "";
    document.body.dataset.live = "ready";
    tick();
  }

  // Without a stream the same page is asked for again, and its regions taken out of it.
  async function poll() {
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error("the console answers " + answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of page.querySelectorAll("[data-region]")) {
        const here = region(part.dataset.region);
        if (here) swap(here, part.innerHTML);
      }
      seen();
    } catch (error) {
      fault = String(error);
      tick();
    }
  }

  function pollFor(on) {
    if (on && !polling) polling = setInterval(poll, 5000);
    if (!on && polling) polling = clearInterval(polling) || 0;
  }

  function listen() {
    const stream = new EventSource("/events?view=" + encodeURIComponent(location.pathname + location.search));
    stream.addEventListener("region", (e) => {
      const { region: name, html } = JSON.parse(e.data);
      const here = region(name);
      if (here) swap(here, html);
    });
    stream.addEventListener("seen", () => {
      pollFor(false);
      seen();
    });
    stream.addEventListener("fault", (e) => {
      fault = JSON.parse(e.data);
      document.body.dataset.live = "ready";
      tick();
    });
    stream.onerror = () => {
      fault = "the stream broke off";
      pollFor(true);
      tick();
      if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 10000); // refused: it is full, or gone
    };
    addEventListener("pagehide", () => stream.close());
  }

  taken = Date.now();
  if (live) listen();
  setInterval(tick, 1000);
  tick();

  // Keys: / searches, g and then a letter goes to a page.
  let going = false;
  const places = { o: "/", b: "/brokers", t: "/topics", g: "/groups", d: "/doctor", m: "/moves" };
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) return;
    if (e.key === "/") {
      const field = document.querySelector('main input[type="search"]') || document.querySelector("[data-key='/']");
      if (field) {
        e.preventDefault();
        field.focus();
        field.select();
      }
      return;
    }
    if (going && places[e.key]) location.href = places[e.key];
    going = e.key === "g" && !going;
  });

  // A command can be copied with one press.
  for (const command of document.querySelectorAll("pre.command")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "copy";
    button.addEventListener("click", () => navigator.clipboard && navigator.clipboard.writeText(command.textContent));
    command.after(button);
  }
})();
