// Comfort only: every page works without it. Nothing from a table is ever made into markup here; results that are
// fetched are pages of this same server, parsed as documents, in which no script runs.
"use strict";

const THEMES = ["system", "light", "dark"];
const storage = {
  get() { try { return localStorage.getItem("theme") || "system"; } catch { return "system"; } },
  set(value) { try { localStorage.setItem("theme", value); } catch { /* private window */ } },
};

function applyTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
applyTheme(storage.get());

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function addTools() {
  const tools = document.getElementById("tools");
  const theme = element("button", "", { type: "button" });
  const name = () => {
    const now = storage.get();
    theme.textContent = `Theme: ${now === "light" || now === "dark" ? now : "auto"}`;
    theme.title = "Change the theme";
  };
  theme.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(storage.get()) + 1) % THEMES.length];
    storage.set(next);
    applyTheme(next);
    name();
  });
  name();
  const keys = element("button", "Keys", { type: "button", "aria-haspopup": "dialog" });
  const dialog = keyDialog();
  keys.addEventListener("click", () => dialog.showModal());
  tools.append(theme, keys);
}

function keyDialog() {
  const dialog = element("dialog", "", { "aria-labelledby": "keys-title", id: "keys" });
  dialog.append(element("h2", "Keys", { id: "keys-title" }));
  const list = element("dl");
  const all = [
    [["/"], "search"], [["j", "↓"], "next row"], [["k", "↑"], "previous row"], [["Enter"], "open the row"],
    [["n"], "next page"], [["p"], "previous page"], [["g"], "overview"], [["d"], "decisions"], [["?"], "these keys"],
  ];
  for (const [names, meaning] of all) {
    const term = element("dt");
    names.forEach((name, i) => { if (i) term.append(" "); term.append(element("kbd", name)); });
    list.append(term, element("dd", meaning));
  }
  const close = element("button", "Close", { type: "button" });
  close.addEventListener("click", () => dialog.close());
  dialog.append(list, close);
  document.body.append(dialog);
  return dialog;
}

// Rows: those with a link, or the rows of a table themselves.
function step(by) {
  const rows = [...document.querySelectorAll("[data-row]")];
  if (!rows.length) return;
  const now = rows.findIndex((row) => row === document.activeElement);
  const next = rows[Math.max(0, Math.min(rows.length - 1, now < 0 ? (by > 0 ? 0 : rows.length - 1) : now + by))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function follow(selector) {
  const link = document.querySelector(selector);
  if (link) link.click();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const inField = event.target.closest("input, select, textarea, dialog");
  if (inField) {
    if (event.key === "Escape" && event.target.matches("[data-search]")) event.target.blur();
    else if (event.key === "ArrowDown" && event.target.matches("[data-search]")) { event.preventDefault(); step(1); }
    return;
  }
  const onRow = document.activeElement && document.activeElement.matches("[data-row]");
  const actions = {
    "/": () => { const field = document.querySelector("[data-search]"); if (field) { field.focus(); field.select(); } },
    "?": () => document.getElementById("keys").showModal(),
    j: () => step(1), k: () => step(-1),
    n: () => follow("a[rel=next]"), p: () => follow("a[rel=prev]"),
    g: () => { location.href = "/"; }, d: () => { location.href = "/decisions"; },
  };
  if (onRow) { actions.ArrowDown = actions.j; actions.ArrowUp = actions.k; }
  if (actions[event.key]) { event.preventDefault(); actions[event.key](); }
}

// Filters act while they are used: the address says what is shown, and the results alone are replaced.
let latest = null;

function formAddress(form) {
  const pairs = [...new FormData(form)];
  const url = new URL(form.getAttribute("action"), location.href);
  const parts = { col: [], op: [], val: [] };
  for (const [name, value] of pairs) if (name in parts) parts[name].push(value);
  for (const [name, value] of pairs) if (!(name in parts) && value !== "") url.searchParams.append(name, value);
  parts.col.forEach((column, i) => {
    if (!column) return;
    url.searchParams.append("col", column);
    url.searchParams.append("op", parts.op[i]);
    url.searchParams.append("val", parts.val[i]);
  });
  return url;
}

async function refresh(url) {
  const results = document.getElementById("results");
  if (latest) latest.abort();
  latest = new AbortController();
  results.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(url, { signal: latest.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("results");
    if (!answer.ok || !fresh) { location.href = url; return; }
    history.replaceState(null, "", answer.url);
    results.replaceWith(document.adoptNode(fresh));
    document.title = page.title;
  } catch (error) {
    if (error.name !== "AbortError") location.href = url;
  }
}

function liveFilters() {
  const form = document.querySelector("form[data-live]");
  if (!form) return;
  const more = form.querySelector("details.more");
  const filtered = [...new URLSearchParams(location.search).keys()].some((name) => !["q", "sort", "dir", "page", "size"].includes(name));
  if (more && matchMedia("(max-width: 46rem)").matches && !filtered) more.open = false;
  let timer = 0;
  const soon = (wait) => { clearTimeout(timer); timer = setTimeout(() => refresh(formAddress(form)), wait); };
  form.addEventListener("input", (event) => { if (event.target.matches("[data-search]")) soon(180); });
  form.addEventListener("change", (event) => {
    const name = event.target.name;
    if (name === "col" || name === "op" || name === "val") return; // conditions wait for the button
    if (!event.target.matches("[data-search]")) soon(0);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  addTools();
  liveFilters();
  document.addEventListener("keydown", onKey);
});
