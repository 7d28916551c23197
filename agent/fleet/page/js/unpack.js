// The data of the page, unpacked: columns of numbers, a number a node
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const N = data.names.length;
const LOOKS = ["critical", "error", "warning", "unknown", "stale", "ok", "nothing_to_check"];
const SEVERITIES = ["", "info", "warning", "error", "critical"];

const spread = (column) => {
  if (Array.isArray(column)) return Int32Array.from(column);
  const all = new Int32Array(N), runs = column.r;
  for (let i = 0, at = 0; i < runs.length; i += 2) {
    all.fill(runs[i], at, at + runs[i + 1]);
    at += runs[i + 1];
  }
  return all;
};
const spansOf = (text) => {
  const mask = new Uint8Array(N);
  for (const span of text ? text.split(" ") : []) {
    const [first, last] = span.split("-").map(Number);
    mask.fill(1, first, (last === undefined ? first : last) + 1);
  }
  return mask;
};
const coded = (each) => ({ ...each, codes: spread(each.codes), below: spansOf(each.below) });

const look = spread(data.look), verdict = spread(data.verdict), stale = spread(data.stale);
const classes = coded(data.class), places = data.places.map(coded), metrics = data.metrics.map(coded);
const facts = data.facts.map(coded), judged = spread(data.judged), foundBy = spread(data.foundBy);
const days = coded(data.days), changedBy = spread(data.changedBy);
const lineBy = spread(data.lineBy), unjudgedBy = spread(data.unjudgedBy);
const rails = { ...data.rails, codes: spread(data.rails.codes) };

// A finding: [rule, severity, label, summary, impact, remedy, evidence, name of the rule, where it is silenced: why]
const found = data.found;
const reportedBy = (node) => (foundBy[node] < 0 ? [] : data.foundSets[foundBy[node]].map((at) => found[at]));
const isSilenced = (each) => each.length > 8;
const findingsOf = (node) => reportedBy(node).filter((each) => !isSilenced(each)); // those that count
const railsOf = (node) => (rails.codes[node] < 0 ? [] : rails.sets[rails.codes[node]]);
const ruleName = (each) => data.texts[each[7]];
const looked = (node) => LOOKS[look[node]];
const labelled = (column, node) => (column.codes[node] < 0 ? "not known" : column.labels[column.codes[node]]);

// Worst first: look, then how many critical, error and warning
const weights = data.foundSets.map((set) => {
  const counts = [0, 0, 0, 0, 0];
  set.forEach((at) => { if (!isSilenced(found[at])) counts[found[at][1]] += 1; });
  return Math.min(counts[4], 99) * 1e4 + Math.min(counts[3], 99) * 100 + Math.min(counts[2], 99);
});
const weight = (node) => (foundBy[node] < 0 ? 0 : weights[foundBy[node]]);
const worstFirst = Int32Array.from({ length: N }, (_, at) => at)
  .sort((a, b) => look[a] - look[b] || weight(b) - weight(a) || a - b);

const why = (node) => {
  const loud = findingsOf(node).filter((each) => each[1] > 1).sort((a, b) => b[1] - a[1]);
  const told = loud.slice(0, 3).map((each) => data.texts[each[2]] + ": " + ruleName(each));
  if (loud.length > 3) told.push("and " + (loud.length - 3) + " more");
  if (data.lost[node]) told.push(data.lost[node]);
  if (stale[node]) told.push("stale");
  if (looked(node) === "unknown") told.push("could not be checked");
  return told.join(", ");
};
const numbered = (count) => count.toLocaleString("en");
const nodesInWords = (count) => numbered(count) + (count === 1 ? " node" : " nodes");

// Elements from texts: nothing in the data is ever read as markup
const make = (tag, attributes, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) if (value !== null) made.setAttribute(name, value);
  made.append(...children.filter((each) => each !== null && each !== ""));
  return made;
};
const SVG = "http://www.w3.org/2000/svg";
const drawnAs = (tag, attributes) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};

// The last days of a node: a bar each, high where it was bad; a gap where nothing is known
const LETTERS = { c: [0, 12], e: [1, 12], w: [2, 9], u: [3, 6], s: [4, 6], o: [5, 4], n: [6, 4] };
const daysOf = (node) => (days.codes.length && days.codes[node] >= 0 ? days.labels[days.codes[node]] : "");
const changesOf = (node) => (changedBy.length && changedBy[node] >= 0 ? data.changed[changedBy[node]] : []);
const spark = (node) => {
  const letters = [...daysOf(node).slice(-31)].filter((letter) => letter === "." || Object.hasOwn(LETTERS, letter));
  if (!letters.some((letter) => letter !== ".")) return "";
  const counts = LOOKS.map((name, at) => [letters.filter((letter) => letter !== "." && LETTERS[letter][0] === at).length, name]);
  const words = counts.filter(([count]) => count).map(([count, name]) => count + (count === 1 ? " day " : " days ") + name.replaceAll("_", " "));
  const about = "last " + letters.length + " days: " + words.join(", ");
  const drawing = drawnAs("svg", { class: "spark", width: letters.length * 5 - 1, height: 12, role: "img", "aria-label": about });
  const title = drawnAs("title", {});
  title.textContent = about;
  drawing.append(title);
  letters.forEach((letter, at) => {
    const [code, height] = letter === "." ? [-1, 1] : LETTERS[letter];
    drawing.append(drawnAs("rect", { class: "look " + (code < 0 ? "gap" : LOOKS[code]), x: at * 5, y: 12 - height, width: 4, height }));
  });
  return drawing;
};
const marks = (node) => {
  const count = (kind) => changesOf(node).filter((line) => line.startsWith(kind)).length;
  const mark = (kind, sign) => (count(kind) ? make("span", { class: "mark " + kind, title: changesOf(node).filter((line) => line.startsWith(kind)).join("\n") },
    sign + count(kind) + " " + kind) : "");
  return [mark("new", "+"), mark("gone", "\u2212")];
};
