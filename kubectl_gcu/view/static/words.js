// What the page says, in the browser's language. What the program says (why a pod waits, which right
// is missing) is in English, as on the terminal.

const ENGLISH = {
  skip: "Skip to the nodes",
  search: "Search",
  searchFor: "node, pod, namespace, model, free, unhealthy",
  colourBy: "Colour by",
  namespace: "namespace",
  pod: "pod",
  summary: "Summary",
  nodes: "Nodes",
  legend: "Legend",
  loading: "Reading the cluster …",
  live: "live",
  lost: "The API server does not answer; this is the last state that it sent.",
  ended: "kubectl gcu view has ended, or does not answer; this is the last state that it sent.",
  taken: (at) => `state of ${at}`,
  cards: "cards",
  free: "free",
  whole: "whole",
  shared: "shared",
  drs: "DRS",
  problems: "with problems",
  unusable: "unusable",
  ofSlices: (used, total) => `${used} of ${total} slices`,
  ofSizes: (used, total) => `size ${used} of ${total}`,
  largest: "Largest request that fits",
  largestWhole: (count) => (count === 1 ? "1 whole card" : `${count} whole cards`),
  largestShared: (count) => (count === 1 ? "1 slice" : `${count} slices`),
  largestDrs: (size) => `instance of size ${size}`,
  noneWhole: "no whole card",
  noneShared: "no slice",
  noneDrs: "no instance",
  on: (node) => `on ${node}`,
  cordoned: "cordoned",
  cordonedLong: "cordoned: nothing new is placed here",
  byLimits: "limits",
  byLimitsLong: "pods ask for these cards by limits, through the device plugin",
  freeOf: (free, cards) => `${free} of ${cards} free`,
  matches: (nodes, cards) => `${cards} cards on ${nodes} nodes match`,
  noMatch: "No card matches.",
  noNodes: "The cluster has no GCUs of this driver.",
  healthy: "healthy",
  unhealthy: "unhealthy",
  mode: "mode",
  health: "health",
  model: "model",
  memory: "memory",
  index: "index",
  minor: "minor",
  uuid: "UUID",
  held: "held by",
  claim: "claim",
  containers: "containers",
  containerEnded: (name) => `${name} (ended)`,
  age: "age",
  admin: "with administrator's access, beside the holder",
  card: "the card",
  slices: (count) => (count === 1 ? "1 slice" : `${count} slices`),
  size: (size) => `size ${size}`,
  nobody: "nobody",
  noClaim: "by limits, without a claim",
  unknownPod: (uid) => `pod of UID ${uid}`,
  unused: "no pod yet",
  waiting: (count) => `Waiting (${count})`,
  noWaiting: "No pod waits for GCUs.",
  group: "group",
  next: "next",
  onNode: (node) => `bound to ${node}`,
  explaining: "Asking …",
  notSaved: "Not in this file: kubectl gcu explain says it.",
  seconds: (n) => `${n} s`,
  minutes: (n) => `${n} min`,
  hours: (n) => `${n} h`,
  days: (n) => `${n} d`,
};

const CHINESE = {
  skip: "跳到节点",
  search: "搜索",
  searchFor: "节点、Pod、命名空间、型号、空闲、不健康",
  colourBy: "着色依据",
  namespace: "命名空间",
  pod: "Pod",
  summary: "概览",
  nodes: "节点",
  legend: "图例",
  loading: "正在读取集群……",
  live: "实时",
  lost: "API server 没有响应；显示的是它最后发送的状态。",
  ended: "kubectl gcu view 已退出或没有响应；显示的是最后收到的状态。",
  taken: (at) => `${at} 的状态`,
  cards: "张卡",
  free: "空闲",
  whole: "整卡",
  shared: "共享",
  drs: "DRS",
  problems: "有问题",
  unusable: "不可用",
  ofSlices: (used, total) => `切片 ${used}/${total}`,
  ofSizes: (used, total) => `规格 ${used}/${total}`,
  largest: "还能满足的最大请求",
  largestWhole: (count) => `${count} 张整卡`,
  largestShared: (count) => `${count} 个切片`,
  largestDrs: (size) => `规格为 ${size} 的实例`,
  noneWhole: "没有整卡",
  noneShared: "没有切片",
  noneDrs: "没有实例",
  on: (node) => `在 ${node}`,
  cordoned: "已封锁",
  cordonedLong: "已封锁（cordon）：不再放置新的 Pod",
  byLimits: "limits",
  byLimitsLong: "Pod 通过 limits（设备插件）申请这些卡",
  freeOf: (free, cards) => `空闲 ${free}/${cards}`,
  matches: (nodes, cards) => `${nodes} 个节点上的 ${cards} 张卡匹配`,
  noMatch: "没有匹配的卡。",
  noNodes: "集群中没有由本驱动管理的 GCU。",
  healthy: "健康",
  unhealthy: "不健康",
  mode: "模式",
  health: "健康状况",
  model: "型号",
  memory: "显存",
  index: "序号",
  minor: "minor",
  uuid: "UUID",
  held: "占用者",
  claim: "claim",
  containers: "容器",
  containerEnded: (name) => `${name}（已结束）`,
  age: "时长",
  admin: "管理员访问，不占用",
  card: "整卡",
  slices: (count) => `${count} 个切片`,
  size: (size) => `规格 ${size}`,
  nobody: "无",
  noClaim: "通过 limits，没有 claim",
  unknownPod: (uid) => `UID 为 ${uid} 的 Pod`,
  unused: "还没有 Pod",
  waiting: (count) => `等待中（${count}）`,
  noWaiting: "没有 Pod 在等待 GCU。",
  group: "组",
  next: "下一步",
  onNode: (node) => `已绑定到 ${node}`,
  explaining: "正在询问……",
  notSaved: "此文件中没有：请用 kubectl gcu explain 查询。",
  seconds: (n) => `${n} 秒`,
  minutes: (n) => `${n} 分钟`,
  hours: (n) => `${n} 小时`,
  days: (n) => `${n} 天`,
};

export const LANGUAGE = navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
const WORDS = LANGUAGE === "zh" ? CHINESE : ENGLISH;
const BOTH = [ENGLISH, CHINESE];

export function word(name, ...values) {
  const found = WORDS[name];
  return typeof found === "function" ? found(...values) : found;
}

// Whether somebody typed that word, in either language.
export function isTyped(typed, name) {
  return BOTH.some((words) => words[name] === typed);
}

// Fills what index.html leaves to the language.
export function translatePage(root) {
  root.documentElement.lang = LANGUAGE;
  for (const each of root.querySelectorAll("[data-word]")) each.textContent = word(each.dataset.word);
  for (const each of root.querySelectorAll("[data-placeholder]")) each.placeholder = word(each.dataset.placeholder);
  for (const each of root.querySelectorAll("[data-label]")) each.setAttribute("aria-label", word(each.dataset.label));
}

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

// Others wrote names, attributes of cards and messages: control characters and marks that turn the
// direction of text are shown as such, as `kubectl gcu inspect` does.
export function plain(text) {
  return String(text).replace(/\s/g, " ").replace(INVISIBLE, "\ufffd");
}

// A new element with a class, and with text that is never markup.
export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== "") made.textContent = plain(text);
  return made;
}

let clock = Date.now;

// Ages are those of that moment from now on: a saved page may be read a week later.
export function stopClock(moment) {
  clock = () => moment;
}

export function age(since) {
  const seconds = Math.max(0, Math.round((clock() - Date.parse(since)) / 1000));
  if (Number.isNaN(seconds)) return "";
  if (seconds < 120) return word("seconds", seconds);
  if (seconds < 7200) return word("minutes", Math.floor(seconds / 60));
  if (seconds < 172800) return word("hours", Math.floor(seconds / 3600));
  return word("days", Math.floor(seconds / 86400));
}
