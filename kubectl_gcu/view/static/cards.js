// Rows of nodes, and cards as blocks in the order of their PCI addresses.

import { matching, nodeKey } from "./model.js";
import { element, plain, word } from "./words.js";

const TOTAL = { whole: () => 1, shared: (card) => card.slices, drs: (card) => card.size };

// A row for the node.
export function drawNode(node, colours) {
  const row = element("div", "node");
  row.setAttribute("role", "row");
  row.dataset.key = nodeKey(node);
  row.append(heading(node));
  const cards = element("div", "cards");
  cards.setAttribute("role", "presentation");
  node.cards.forEach((card, index) => {
    const block = drawCard(node, card, colours);
    block.dataset.index = index;
    cards.append(block);
  });
  row.append(cards);
  return row;
}

// Dims the cards of the row that the search is not for; a row of none but these is hidden.
export function filterRow(row, node, search) {
  const found = new Set(matching(node, search));
  row.dataset.found = found.size;
  row.hidden = found.size === 0 && search.trim() !== "";
  const blocks = row.lastElementChild.children;
  node.cards.forEach((card, index) => blocks[index].classList.toggle("dim", !found.has(card)));
}

function heading(node) {
  const made = element("div", "name");
  made.setAttribute("role", "rowheader");
  made.append(element("span", "node-name", node.name));
  made.append(element("small", "", word("freeOf", node.totals.free, node.totals.cards)));
  if (node.unschedulable) made.append(chip("cordoned", "cordonedLong"));
  if (node.servedBy === "limits") made.append(chip("byLimits", "byLimitsLong"));
  return made;
}

function chip(name, title) {
  const made = element("span", "chip", word(name));
  made.title = word(title);
  return made;
}

function drawCard(node, card, colours) {
  const block = element("div", `card ${card.mode || "free"}`);
  block.setAttribute("role", "gridcell");
  block.tabIndex = -1;
  block.setAttribute("aria-label", describe(node, card));
  if (card.problems.length) block.classList.add("problem");
  const holders = card.holders.filter((each) => !each.admin);
  if (holders.length < card.holders.length) block.classList.add("watched");
  for (const holder of holders) block.append(part(holder, colours));
  const left = card.mode ? Math.max(0, TOTAL[card.mode](card) - card.used) : 0;
  if (left) block.append(room(left));
  return block;
}

function part(holder, colours) {
  const name = colours.nameOf(holder);
  const label = holder.mode === "drs" ? String(holder.amount) : "";
  const made = element("span", "part", label);
  made.style.setProperty("--hue", colours.hue(name));
  made.style.setProperty("--units", holder.amount);
  return made;
}

function room(units) {
  const made = element("span", "room");
  made.style.setProperty("--units", units);
  return made;
}

// How much of a card a holder has.
export function amount(holder) {
  if (holder.mode === "whole") return word("card");
  if (holder.mode === "shared") return word("slices", holder.amount);
  return holder.profile || word("size", holder.amount);
}

export function podName(pod) {
  return pod.name ? `${pod.namespace}/${pod.name}` : word("unknownPod", pod.uid);
}

export function usage(card) {
  if (card.mode === "shared") return card.slices ? word("ofSlices", card.used, card.slices) : word("slices", card.used);
  if (card.mode === "drs") return card.size ? word("ofSizes", card.used, card.size) : word("size", card.used);
  return "";
}

// Empty where the user may not read what the node offers.
export function health(card) {
  const known = card.whole || card.slices || card.size ? word("healthy") : "";
  return card.problems.join(", ") || known;
}

export const modeName = (card) => word(card.mode || "free");

// The card in one sentence, for those who hear the page.
function describe(node, card) {
  const holders = card.holders.map((each) => `${amount(each)}: ${each.pods.map(podName).join(", ") || each.claim}`);
  const parts = [node.name, card.address, card.model, modeName(card), usage(card), health(card), ...holders];
  return plain(parts.filter(Boolean).join(", "));
}
