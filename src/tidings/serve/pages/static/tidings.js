// The one script: theme switch, live numbers, relative times, threads that grow, suggestions. Every page works without it.
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

  // One stream for the whole browser: it has six connections for a host, so that a seventh page would wait for ever. Of the
  // pages on the screen, the one that holds the lock listens and tells the others. Where there are no locks (plain HTTP from
  // another machine), pages look every 30 seconds.
  const RETRY_MS = 30000;
  const listen = (soon) => {
    if (!navigator.locks || !window.BroadcastChannel || !window.EventSource) return;
    const name = `tidings-stream:${page.dataset.root}`, channel = new BroadcastChannel(name);
    channel.addEventListener("message", soon);
    let leave = () => {};
    const lead = () => new Promise((over) => {
      const stream = new EventSource(`${page.dataset.root}/api/v1/events`);
      stream.addEventListener("item", () => { channel.postMessage("item"); soon(); });
      // A refusal ends a stream for good; a lost connection comes back by itself.
      stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) setTimeout(turn, RETRY_MS); });
      leave = () => { stream.close(); over(); };
    });
    const turn = () => {
      leave();
      leave = () => {};
      if (document.hidden) return;
      const asking = new AbortController();
      leave = () => asking.abort();
      navigator.locks.request(name, { signal: asking.signal }, () => (asking.signal.aborted ? null : lead())).catch(() => {});
    };
    turn();
    document.addEventListener("visibilitychange", turn);
    addEventListener("pagehide", () => leave());
    addEventListener("pageshow", (event) => { if (event.persisted) turn(); });
  };

  const live = () => {
    if (!document.querySelector("[data-live]")) return;
    const thread = document.querySelector(".thread[data-thread]"), grow = thread && follow(thread);
    let waiting = false, busy = false;
    const refresh = async () => {
      waiting = false;
      if (busy || document.hidden) return;
      busy = true;
      try {
        const address = new URL(location.href);
        address.searchParams.delete("told");
        const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          swap(fresh);
          grow?.(fresh);
        }
      } catch { /* The server is away; the stream comes back by itself. */ }
      busy = false;
    };
    const soon = () => {
      if (waiting) return;
      waiting = true;
      setTimeout(refresh, thread ? 2000 : 1000);
    };
    listen(soon);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
    setInterval(soon, 30000);
  };

  // A thread grows while someone reads it: what is new since the last look is marked, and nothing on the screen moves.
  const SEEN_MAX = 300;
  const seenThreads = () => {
    try { return JSON.parse(localStorage.getItem("seen")) || {}; } catch { return {}; }
  };
  const follow = (thread) => {
    page.classList.add("has-thread");
    const name = thread.dataset.part > 1 ? `${thread.dataset.thread}?part=${thread.dataset.part}` : thread.dataset.thread;
    const before = seenThreads()[name], note = thread.querySelector(".news");
    const numberOf = (comment) => Number(comment.dataset.number);
    const remember = () => {
      const seen = seenThreads(), numbers = [...thread.querySelectorAll(".comment")].map(numberOf);
      delete seen[name];
      seen[name] = [Math.max(before?.[0] ?? 0, ...numbers), Date.now()];
      try { localStorage.setItem("seen", JSON.stringify(Object.fromEntries(Object.entries(seen).slice(-SEEN_MAX)))); }
      catch { /* Then the next visit begins anew. */ }
    };
    const mark = (comment) => {
      const head = comment.querySelector(":scope > details > summary");
      comment.classList.add("fresh");
      if (!head.querySelector(".tag.new")) {
        head.append(Object.assign(document.createElement("span"), { className: "tag good new", textContent: "new" }));
      }
    };
    const tellNews = () => {
      const fresh = thread.querySelectorAll(".comment.fresh");
      if (!fresh.length) return;
      const since = before ? `since you last looked ${ago(before[1] - skew)}` : "since you opened this page";
      const words = `${fresh.length} new ${fresh.length === 1 ? "comment" : "comments"} ${since}. `;
      if (note.firstChild?.data === words && note.lastChild.hash === `#${fresh[0].id}`) return;
      const link = Object.assign(document.createElement("a"), { href: `#${fresh[0].id}`, textContent: "Go to the first" });
      note.replaceChildren(words, link);
      note.hidden = false;
    };
    const put = (theirs) => {
      const copy = document.importNode(theirs, true);
      for (const each of copy.querySelectorAll(".comment")) each.remove();
      const above = theirs.parentElement.closest(".comment");
      const place = above ? document.getElementById(above.id)?.querySelector(":scope > details") ?? thread : thread;
      let left = theirs.previousElementSibling;
      while (left && !left.matches(".comment")) left = left.previousElementSibling;
      const beside = left && document.getElementById(left.id);
      const first = place.querySelector(":scope > .comment");
      if (beside?.parentElement === place) beside.after(copy);
      else if (first) first.before(copy);
      else if (above) place.append(copy);
      else note.after(copy);
      mark(copy);
    };
    const renew = (ours, theirs) => {
      for (const part of [":scope > details > .prose", ":scope > details > summary b"]) {
        const old = ours.querySelector(part), next = theirs.querySelector(part);
        if (old && next && said(old) !== said(next)) old.replaceWith(document.importNode(next, true));
      }
      ours.classList.toggle("gone", theirs.classList.contains("gone"));
    };
    const bury = (ours) => {
      const words = ours.querySelector(":scope > details > .prose");
      ours.classList.add("gone");
      if (words.textContent !== "No longer here.") words.textContent = "No longer here.";
    };
    for (const comment of thread.querySelectorAll(".comment")) {
      if (before && numberOf(comment) > before[0]) mark(comment);
    }
    tellNews();
    addEventListener("pagehide", remember);
    document.addEventListener("visibilitychange", () => { if (document.hidden) remember(); });
    return (fresh) => {
      const next = fresh.querySelector(".thread");
      if (!next) return;
      const lines = [...thread.querySelectorAll(".comment > details > summary")];
      const line = lines.find((each) => each.getBoundingClientRect().bottom > 0);
      const top = line?.getBoundingClientRect().top;
      for (const theirs of next.querySelectorAll(".comment")) {
        const ours = document.getElementById(theirs.id);
        if (ours) renew(ours, theirs); else put(theirs);
      }
      // In a thread of several parts, what is not here may have moved to another.
      if (next.dataset.parts < 2) {
        for (const ours of thread.querySelectorAll(".comment")) if (!fresh.getElementById(ours.id)) bury(ours);
      }
      thread.querySelector(".over").textContent = next.querySelector(".over").textContent;
      tellNews();
      if (line && scrollY > 0) scrollBy({ top: line.getBoundingClientRect().top - top, behavior: "instant" });
    };
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
