// The one script: theme switch, live numbers, relative times, suggestions. Every page works without it.
"use strict";
(() => {
  const page = document.documentElement;
  const themes = ["system", "light", "dark"];
  const remembered = () => {
    try { return localStorage.getItem("theme") || "system"; } catch { return "system"; }
  };
  const dress = (theme) => {
    if (theme === "system") page.removeAttribute("data-theme");
    else page.setAttribute("data-theme", theme);
  };
  dress(remembered());

  // Times were told by the server's clock; what ours differs is kept out of them.
  const skew = Date.now() - Number(page.dataset.now);
  const ago = (ms) => {
    const seconds = (Date.now() - skew - ms) / 1000, size = Math.abs(seconds);
    if (size < 2) return "just now";
    if (size >= 60 * 86400) return new Date(ms).toISOString().slice(0, 10);
    const [unit, length] = size < 60 ? ["s", 1] : size < 3600 ? ["min", 60] : size < 86400 ? ["h", 3600] : ["d", 86400];
    const said = `${Math.round(size / length)} ${unit}`;
    return seconds > 0 ? `${said} ago` : `in ${said}`;
  };
  const tell = (time) => {
    const at = Number(time.dataset.at);
    return "due" in time.dataset && at <= Date.now() - skew ? "now" : ago(at);
  };
  const retell = () => {
    for (const time of document.querySelectorAll("time[data-at]")) time.textContent = tell(time);
  };

  // What a part says, without what differs on every page: form tokens, relative times, what someone unfolded.
  const said = (part) => part.innerHTML
    .replace(/(<time[^>]*>)[^<]*/g, "$1")
    .replace(/(name="form_token" value=)"[^"]*"/g, "$1")
    .replace(/ open=""/g, "");
  const nameOf = (details) => details.closest("li")?.querySelector("a")?.getAttribute("href") ?? details.className;
  const swap = (fresh) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      // Leave alone what someone is using, and what has not changed.
      if (!next || part.contains(document.activeElement) || said(part) === said(next)) continue;
      const open = new Set([...part.querySelectorAll("details[open]")].map(nameOf));
      part.replaceChildren(...next.childNodes);
      for (const each of part.querySelectorAll("details")) each.open = each.open || open.has(nameOf(each));
      part.className = next.className;
    }
    document.title = fresh.title;
  };

  const live = () => {
    if (!document.querySelector("[data-live]") || !window.EventSource) return;
    let waiting = false, busy = false;
    const refresh = async () => {
      waiting = false;
      if (busy || document.hidden) return;
      busy = true;
      try {
        const address = new URL(location.href);
        address.searchParams.delete("told");
        const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
        if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } catch { /* The server is away; the stream comes back by itself. */ }
      busy = false;
    };
    const soon = () => {
      if (waiting) return;
      waiting = true;
      setTimeout(refresh, 1000);
    };
    const stream = new EventSource(`${page.dataset.root}/api/v1/events`);
    stream.addEventListener("item", soon);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
    addEventListener("pagehide", () => stream.close());
    setInterval(soon, 30000);
  };

  // While someone types, the field offers how the query may go on; only the answer to the last letter counts.
  const suggest = (field, number) => {
    const offers = document.createElement("datalist");
    offers.id = `suggestions-${number}`;
    field.after(offers);
    field.setAttribute("list", offers.id);
    let waiting = 0, latest = 0;
    const ask = async () => {
      const turn = ++latest, values = new URLSearchParams({ q: field.value });
      const where = field.form?.elements.namedItem("pipeline");
      if (where?.value) values.set("pipeline", where.value);
      try {
        const answer = await fetch(`${page.dataset.root}/search/suggestions?${values}`, { credentials: "same-origin" });
        const found = answer.ok ? (await answer.json()).suggestions : [];
        if (turn !== latest) return;
        offers.replaceChildren(...found.map((text) => Object.assign(document.createElement("option"), { value: text })));
      } catch { /* Then nothing is offered. */ }
    };
    field.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(ask, 150);
    });
  };

  document.addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("input[data-suggest]").forEach(suggest);
    const button = document.getElementById("theme");
    if (button) {
      const say = (theme) => { button.textContent = `Theme: ${theme}`; };
      say(remembered());
      button.hidden = false;
      button.addEventListener("click", () => {
        const theme = themes[(themes.indexOf(remembered()) + 1) % themes.length];
        try { localStorage.setItem("theme", theme); } catch { /* Then only this page knows. */ }
        dress(theme);
        say(theme);
      });
    }
    // In the narrow bar, where one is may lie beyond its edge.
    for (const here of document.querySelectorAll(".rail nav a[aria-current]")) {
      const bar = here.closest("nav");
      bar.scrollLeft = here.offsetLeft - bar.offsetLeft - (bar.clientWidth - here.offsetWidth) / 2;
    }
    setInterval(retell, 10000);
    live();
  });
})();
