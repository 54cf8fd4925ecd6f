// Follows the program's events and draws what they change.

import { drawNode, filterRow } from "./cards.js";
import { Details } from "./details.js";
import { Cluster, Colours } from "./model.js";
import { drawLargest, drawTotals, Waiting } from "./side.js";
import { element, LANGUAGE, stopClock, translatePage, word } from "./words.js";

const get = (id) => document.getElementById(id);
const cluster = new Cluster();
const colours = new Colours();
const rows = new Map();
const details = new Details(get("details"));
const saved = get("saved") && JSON.parse(get("saved").textContent);
const waiting = new Waiting(get("waiting"), saved ? explainSaved : explainNow);
let search = "";
let isProgramLost = false;

async function explainNow(pod) {
  const query = new URLSearchParams({ namespace: pod.namespace, name: pod.name });
  try {
    const answer = await fetch(`/explain?${query}`);
    if (answer.ok) return await answer.json();
    return { statements: [], error: `HTTP ${answer.status}` };
  } catch {
    return { statements: [], error: word("ended") };
  }
}

async function explainSaved(pod) {
  return saved.explained[pod.uid] ?? { statements: [], error: word("notSaved") };
}

// Rows -------------------------------------------------------------------------------------------

function drawRows(keys) {
  colours.prepare(keys.map((key) => cluster.nodes.get(key)).filter(Boolean));
  const isNew = keys.some((key) => cluster.nodes.has(key) !== rows.has(key));
  for (const key of keys) drawRow(key);
  if (isNew) arrange();
  if (!get("nodes").querySelector('[tabindex="0"]')) makeReachable(visibleCards()[0]);
  countMatches();
}

function drawRow(key) {
  const [old, node] = [rows.get(key), cluster.nodes.get(key)];
  if (!node) {
    old?.remove();
    rows.delete(key);
    return;
  }
  const made = drawNode(node, colours);
  filterRow(made, node, search);
  rows.set(key, made);
  if (!old) return;
  const [reachable, focused] = [old.querySelector('[tabindex="0"]'), old.contains(document.activeElement)];
  const same = reachable && made.querySelector(`[data-index="${reachable.dataset.index}"]`);
  const hovered = [...old.querySelectorAll(".card")].find((each) => details.isFor(each));
  old.replaceWith(made);
  if (same) makeReachable(same);
  if (same && focused) same.focus();
  else if (hovered) showDetails(made.querySelector(`[data-index="${hovered.dataset.index}"]`));
}

// Puts new rows in their places; the others stay, with the focus.
function arrange() {
  const grid = get("nodes");
  cluster.keys().forEach((key, at) => {
    if (grid.children[at] !== rows.get(key)) grid.insertBefore(rows.get(key), grid.children[at] ?? null);
  });
}

function countMatches() {
  const shown = [...rows.values()].filter((row) => !row.hidden);
  const cards = shown.reduce((sum, row) => sum + Number(row.dataset.found), 0);
  get("matches").textContent = search.trim() ? word("matches", shown.length, cards) : "";
  get("nothing").hidden = shown.length > 0;
  get("nothing").textContent = word(rows.size ? "noMatch" : "noNodes");
}

// Sections ---------------------------------------------------------------------------------------

function drawSections(changed) {
  const { sections } = cluster;
  const isLoading = Boolean(sections.loading);
  get("loading").hidden = !isLoading;
  get("summary").hidden = document.querySelector("main").hidden = isLoading;
  drawStatus();
  if (isLoading) return;
  if ("totals" in changed) get("totals").replaceChildren(...drawTotals(sections.totals));
  if ("largest" in changed) get("largest").replaceChildren(...drawLargest(sections.largest));
  if ("waiting" in changed || "groups" in changed) {
    get("waiting-title").textContent = word("waiting", sections.waiting.length);
    waiting.draw(sections.waiting, sections.groups);
  }
}

function drawStatus() {
  const { lost = "", missing = [], notices = [] } = cluster.sections;
  const isLost = isProgramLost || Boolean(lost);
  get("live").className = isLost ? "lost" : saved ? "saved" : "live";
  get("live").textContent = saved ? word("taken", new Date(saved.taken).toLocaleString(LANGUAGE)) : isLost ? "" : word("live");
  const said = isProgramLost ? [word("ended")] : lost ? [word("lost"), lost] : [];
  const lines = said.length ? [element("li", "lost", said.join(" "))] : [];
  get("notices").replaceChildren(...lines, ...[...missing, ...notices].map((each) => element("li", "", each)));
  document.body.classList.toggle("stale", isLost);
}

function drawLegend() {
  const parts = ["whole", "shared", "drs", "free"].map((mode) => {
    const item = element("li");
    const sample = element("span", `card sample ${mode}`);
    for (const units of { whole: [1], shared: [2], drs: [1, 3], free: [] }[mode]) {
      const part = element("span", "part plain");
      part.style.setProperty("--units", units);
      sample.append(part);
    }
    if (mode === "shared") {
      const room = element("span", "room");
      room.style.setProperty("--units", 2);
      sample.append(room);
    }
    item.append(sample, element("span", "", word(mode)));
    return item;
  });
  const bad = element("li");
  bad.append(element("span", "card sample free problem"), element("span", "", word("unhealthy")));
  const names = colours.by === "namespace" ? colours.names() : [];
  get("legend").replaceChildren(...parts, bad, ...names.map((name) => {
    const item = element("li");
    const dot = element("span", "dot");
    dot.style.setProperty("--hue", colours.hue(name));
    item.append(dot, element("span", "", name));
    return item;
  }));
}

// Keyboard and pointer ---------------------------------------------------------------------------

const visibleCards = () => [...get("nodes").querySelectorAll(".node:not([hidden]) .card")];

function makeReachable(block) {
  if (!block) return;
  for (const each of get("nodes").querySelectorAll('[tabindex="0"]')) each.tabIndex = -1;
  block.tabIndex = 0;
}

function showDetails(block) {
  const node = cluster.nodes.get(block?.closest(".node")?.dataset.key);
  if (node) details.show(node, node.cards[block.dataset.index], block);
}

function neighbour(block, key) {
  const row = block.closest(".node");
  const within = [...row.querySelectorAll(".card")];
  const at = within.indexOf(block);
  const shown = () => [...get("nodes").querySelectorAll(".node:not([hidden])")];
  const beside = (step) => {
    const all = shown();
    const cards = all[all.indexOf(row) + step]?.querySelectorAll(".card");
    return cards?.[Math.min(at, cards.length - 1)];
  };
  return {
    ArrowRight: () => within[at + 1],
    ArrowLeft: () => within[at - 1],
    ArrowDown: () => beside(1),
    ArrowUp: () => beside(-1),
    Home: () => within[0],
    End: () => within.at(-1),
  }[key]?.();
}

function listen() {
  const grid = get("nodes");
  grid.addEventListener("pointerover", (event) => {
    const block = event.target.closest(".card");
    if (block) showDetails(block);
  });
  grid.addEventListener("pointerleave", () => details.hide());
  grid.addEventListener("focusin", (event) => {
    if (!event.target.matches(".card")) return;
    makeReachable(event.target);
    showDetails(event.target);
  });
  grid.addEventListener("focusout", () => details.hide());
  grid.addEventListener("keydown", (event) => {
    const next = event.target.matches(".card") && neighbour(event.target, event.key);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
  addEventListener("scroll", () => details.hide(), { passive: true });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") details.hide();
    if (event.key === "/" && !event.target.matches("input")) {
      event.preventDefault();
      get("search").focus();
    }
  });
  get("search").addEventListener("input", (event) => {
    search = event.target.value;
    for (const [key, row] of rows) filterRow(row, cluster.nodes.get(key), search);
    countMatches();
  });
  get("colours").addEventListener("change", (event) => {
    colours.choose(event.target.value);
    drawRows([...cluster.nodes.keys()]);
    drawLegend();
  });
  setInterval(() => waiting.draw(cluster.sections.waiting ?? [], cluster.sections.groups ?? []), 30000);
}

// Events -----------------------------------------------------------------------------------------

function take(data, keys) {
  isProgramLost = false;
  const before = colours.names().length;
  if (keys.length) drawRows(keys);
  drawSections(data);
  if (colours.names().length !== before || !get("legend").children.length) drawLegend();
}

function follow() {
  const events = new EventSource("/events");
  events.addEventListener("snapshot", (event) => {
    const data = JSON.parse(event.data);
    const before = [...rows.keys()];
    take(data, [...new Set([...before, ...cluster.replace(data)])]);
  });
  events.addEventListener("changes", (event) => {
    const data = JSON.parse(event.data);
    take(data, cluster.change(data));
  });
  events.addEventListener("error", () => {
    isProgramLost = true;
    drawStatus();
  });
}

translatePage(document);
listen();
if (saved) {
  stopClock(Date.parse(saved.taken));
  take(saved, cluster.replace(saved));
} else follow();
