// The reading view's keys, as readers of feeds know them. Without this script every link and button works as well.
"use strict";
(() => {
  const reading = document.querySelector(".reader-view");
  if (!reading) return;
  const root = document.documentElement.dataset.root;
  const token = reading.dataset.token;
  const opened = document.getElementById("reading-item");
  const entries = [...document.querySelectorAll(".entry")];
  const links = entries.map((entry) => entry.querySelector(".open"));

  const place = () => {
    const focused = links.indexOf(document.activeElement);
    return focused >= 0 ? focused : entries.findIndex((entry) => opened && entry.dataset.item === opened.dataset.item);
  };
  const chosen = () => opened || entries[place()];
  const showMark = (item, name, value) => {
    for (const element of [opened, ...entries]) {
      if (!element || element.dataset.item !== item) continue;
      element.dataset[name] = String(value);
      if (name === "read") element.classList.toggle("is-read", value);
      if (name === "starred") element.classList.toggle("is-starred", value);
    }
  };
  const mark = async (element, name, value) => {
    if (!element || !token) return;
    const item = element.dataset.item;
    const body = new URLSearchParams({ form_token: token, items: item, back: "/read", [name]: String(value) });
    showMark(item, name, value);
    const answer = await fetch(`${root}/read/marks`, { method: "POST", body, redirect: "manual" }).catch(() => null);
    if (!answer || (answer.type !== "opaqueredirect" && !answer.ok)) showMark(item, name, !value);
  };
  const toggle = (name) => {
    const element = chosen();
    if (element) mark(element, name, element.dataset[name] !== "true");
  };
  const step = (by) => {
    const at = place();
    const next = links[at < 0 ? 0 : at + by];
    if (!next) return;
    if (opened) location.assign(next.href);
    else next.focus();
  };
  const go = (show) => {
    const address = new URL(location.href);
    for (const name of ["item", "cursor", "show", "told", "undo"]) address.searchParams.delete(name);
    if (show !== "unread") address.searchParams.set("show", show);
    location.assign(address);
  };

  const keys = {
    j: () => step(1), n: () => step(1), k: () => step(-1), p: () => step(-1),
    o: () => { const link = links[place()]; if (link) location.assign(link.href); },
    v: () => {
      const address = opened ? opened.dataset.url : links[place()]?.dataset.url;
      if (address) window.open(address, "_blank", "noopener,noreferrer");
    },
    m: () => toggle("read"), s: () => toggle("starred"), f: () => toggle("starred"),
    "/": () => document.querySelector(".reading-find input").focus(),
    "?": () => {
      const help = document.querySelector(".keys");
      help.open = !help.open;
      if (help.open) help.scrollIntoView({ block: "nearest" });
    },
  };
  const places = { u: () => go("unread"), s: () => go("starred"), a: () => go("all") };
  let goes = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const act = (goes ? places : keys)[event.key];
    goes = !goes && event.key === "g";
    if (!act) return;
    event.preventDefault();
    act();
  });
  if (opened && opened.dataset.read === "false") mark(opened, "read", true);
})();
