// The map: one path for each look, whatever the number of cells
const shapes = N ? JSON.parse($("drawn").dataset.signs) : {};
const scaled = (shape, size) => {
  let arc = -1;
  return shape.split(" ").map((word) => {
    const letter = /^[a-z]/.test(word) ? word[0] : "", number = word.slice(letter.length);
    arc = letter === "a" ? 0 : letter ? -1 : arc >= 0 ? arc + 1 : arc;
    const kept = number === "" || (arc >= 0 && [2, 3, 4].includes(arc % 7)); // flags of an arc are no lengths
    return letter + (kept ? number : Math.round(number * size * 100) / 100);
  }).join(" ");
};
const NAMES = { ok: "ok", nothing_to_check: "nothing to check", unknown: "could not be checked", stale: "stale",
  none: "not applicable, switched off, or nothing there" };
const isRails = () => view.arranged === "rails" || view.arranged === "leaves";
const nodeOf = (cell) => (isRails() ? Math.floor(cell / 64) : cell);
const railOf = (cell) => (isRails() ? railsOf(Math.floor(cell / 64))[cell % 64] : null);

// A painter says how a cell looks: "ok", or "level c3" with its place in a scale of colours
const LEVELS = 7;
const level = (code, { length }) => (length < 2 ? LEVELS - 1 : Math.round((code * (LEVELS - 1)) / (length - 1)));
const byVerdict = (cell) => {
  const rail = railOf(cell);
  const shown = looked(nodeOf(cell));
  if (!rail) return shown;
  if (rail[1] > 1) return SEVERITIES[rail[1]];
  return ["unknown", "stale", "nothing_to_check"].includes(shown) ? shown : "ok";
};
const steps = (look, labels) => labels.map((_, code) => look + " c" + level(code, labels));
const byMetric = (metric) => {
  const usual = steps("level", metric.labels), under = steps("below", metric.labels);
  return (cell) => {
    const node = nodeOf(cell), code = metric.codes[node];
    return code < 0 ? "unknown" : (metric.below[node] ? under : usual)[code];
  };
};
const byRailValue = (place, labels) => {
  const all = steps("level", labels);
  return (cell) => {
    const rail = railOf(cell);
    return !rail || rail[place] < 0 ? "unknown" : all[rail[place]];
  };
};
const byRule = (rule) => {
  const letters = data.vectors.map((each) => each[rule] || " ");
  const sets = data.foundSets.map((set) => {
    const all = set.map((at) => found[at]).filter((each) => each[0] === rule);
    const open = all.filter((each) => !isSilenced(each)).map((each) => each[1]);
    return all.length && !open.length ? -1 : Math.max(0, ...open);
  });
  return (cell) => {
    const node = nodeOf(cell), letter = judged[node] < 0 ? " " : letters[judged[node]];
    if (letter === "f" && foundBy[node] >= 0 && sets[foundBy[node]] < 0) return "none"; // silenced
    if (letter === "f") return SEVERITIES[foundBy[node] < 0 ? 0 : sets[foundBy[node]]] || "warning";
    if (letter === "u" || letter === " ") return "unknown";
    if (letter !== "p") return "none";
    return stale[node] ? "stale" : "ok";
  };
};
const painter = () => {
  const [kind, key] = view.coloured.split("/");
  if (kind === "metric") return byMetric(metrics[key]);
  if (kind === "rule") return byRule(Number(key));
  if (kind === "rate") return isRails() ? byRailValue(3, rails.rates) : byVerdict;
  if (kind === "link") return isRails() ? byRailValue(4, rails.links) : byVerdict;
  return byVerdict;
};

const view = { arranged: "", coloured: "verdict", mask: null, only: false, at: -1, laid: null, counts: new Map() };

const arrange = () => {
  const width = $("drawn").clientWidth;
  if (!width) return;
  view.laid = laidOut(groupsOf(view.arranged, view.only ? view.mask : null), view.arranged, width);
  view.at = -1;
  paint();
};
const shortened = (text, letters) => {
  // names of one kind differ at their end
  const start = Math.floor(letters / 3);
  return text.length <= letters ? text : text.slice(0, start) + "…" + text.slice(start + 1 - letters);
};
const LABEL_FONT = "11px system-ui, \"DejaVu Sans\", sans-serif"; // as page.css has it
const pen = document.createElement("canvas").getContext("2d");
const fitted = (text, pixels) => {
  // measured: capital letters are twice as wide as others
  let letters = Math.min(text.length, Math.floor(pixels / 3)), result = shortened(text, letters);
  while (letters > 3 && pen.measureText(result).width > pixels) result = shortened(text, letters -= 1);
  return result;
};
const differing = (text, start, pixels) => {
  // the word at `start`, and as much of the end as there is room for
  const word = text.slice(start).match(/^\w*/)[0].length;
  let tail = start, result = "…" + text.slice(start);
  while (tail < text.length && pen.measureText(result).width > pixels) {
    tail = Math.max(tail, start + word) + 1;
    result = "…" + text.slice(start, start + word) + "…" + text.slice(tail);
  }
  return result;
};
const labelTexts = (labels, size) => {
  // labels that would read the same begin with the first word in which they differ
  const result = labels.map((each) => fitted(each.text, each.room * size));
  for (let round = 0; round < 4; round += 1) {
    const alike = new Map();
    result.forEach((text, at) => alike.set(text, alike.get(text) || []).get(text).push(at));
    for (const group of alike.values()) {
      const texts = group.map((at) => labels[at].text), [first] = texts;
      if (texts.every((text) => text === first)) continue;
      let start = 0;
      while (texts.every((text) => text[start] === first[start])) start += 1;
      while (start && /\w/.test(first[start - 1])) start -= 1;
      for (const at of group) result[at] = differing(labels[at].text, start, labels[at].room * size);
    }
  }
  return result;
};
const paint = () => {
  const { count, size, wide, high, cells, xs, ys, labels } = view.laid;
  const kinds = new Map(), paintOf = painter(), mask = view.mask;
  const inner = size - (size > 6 ? 2 : 1), edge = (size - inner) / 2;
  for (let i = 0; i < count; i += 1) {
    const name = paintOf(cells[i]);
    let kind = kinds.get(name);
    if (!kind) kinds.set(name, kind = { shape: scaled(shapes[name.split(" ")[0]], inner), clear: [], faint: [] });
    const at = "M" + (xs[i] * size + edge) + " " + (ys[i] * size + edge) + kind.shape;
    (mask && !mask[nodeOf(cells[i])] ? kind.faint : kind.clear).push(at);
  }
  const width = wide * size, height = high * size;
  const svg = drawnAs("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  pen.font = LABEL_FONT;
  const texts = labelTexts(labels, size);
  labels.forEach((each, at) => {
    const text = drawnAs("text", { x: each.x * size + edge, y: each.y * size + LABEL });
    text.textContent = texts[at];
    svg.append(text);
  });
  for (const [name, { clear, faint }] of kinds) {
    if (clear.length) svg.append(drawnAs("path", { d: clear.join(""), class: "look " + name }));
    if (faint.length) svg.append(drawnAs("path", { d: faint.join(""), class: "look " + name + " faint" }));
  }
  svg.append(drawnAs("rect", { class: "cursor", width: size, height: size, x: -99, y: 0, rx: 1 }));
  $("drawn").replaceChildren(svg);
  view.counts = new Map();
  for (const [name, { clear }] of kinds) if (clear.length) view.counts.set(name, clear.length);
  legend();
  if (view.at >= 0) goTo(view.at, false);
};

const signOf = (look) => {
  const svg = drawnAs("svg", { viewBox: "0 0 12 12", width: 12, height: 12, class: "sign", "aria-hidden": "true" });
  svg.append(drawnAs("path", { d: "M1 1" + scaled(shapes[look.split(" ")[0]], 10), class: "look " + look }));
  return svg;
};
const legend = () => {
  const [kind, key] = view.coloured.split("/");
  const ofRails = isRails() ? { rate: { labels: rails.rates }, link: { labels: rails.links } } : {};
  const scale = kind === "metric" ? metrics[key] : ofRails[kind];
  const items = [];
  const item = (look, tone, words, count) => {
    const shown = signOf(look + (tone >= 0 ? " c" + tone : ""));
    items.push(make("span", {}, shown, words + (count === null ? "" : " " + numbered(count))));
  };
  if (scale) {
    const last = scale.labels.length - 1;
    scale.labels.forEach((text, code) => {
      if (last < 9 || code === 0 || code === last) item("level", level(code, scale.labels), text, null);
    });
    const odd = [...view.counts.keys()].some((each) => each.startsWith("below"));
    if (odd) item("below", -1, "below the usual value of its class", null);
  }
  const order = [...LOOKS, "info", "none"];
  for (const each of order) {
    const words = scale && each === "unknown" ? "not known" : NAMES[each] || each;
    if (view.counts.has(each)) item(each, -1, words, view.counts.get(each));
  }
  $("legend").replaceChildren(...items);
};

// The cell under the pointer or the keyboard
const cellAt = (event) => {
  const box = $("drawn").firstChild.getBoundingClientRect(), { size, wide, high, grid } = view.laid;
  const x = Math.floor((event.clientX - box.left) / size), y = Math.floor((event.clientY - box.top) / size);
  return x < 0 || y < 0 || x >= wide || y >= high ? -1 : grid[y * wide + x];
};
const described = (i) => {
  const cell = view.laid.cells[i], node = nodeOf(cell), rail = railOf(cell);
  const told = [data.names[node] + (rail ? ", rail " + rail[0] : ""), looked(node)];
  if (rail) {
    if (rail[2] >= 0) told.push("leaf " + rails.leaves[rail[2]]);
    if (rail[3] >= 0) told.push(rails.rates[rail[3]]);
    if (rail[4] >= 0) told.push(rails.links[rail[4]]);
  }
  const [kind, key] = view.coloured.split("/");
  if (kind === "metric") told.push(metrics[key].title + " " + labelled(metrics[key], node));
  return [...told, why(node)].filter(Boolean).join("; ");
};
const goTo = (i, aloud = true) => {
  const { size, xs, ys } = view.laid, cursor = $("drawn").querySelector(".cursor");
  view.at = i;
  cursor.setAttribute("x", i < 0 ? -99 : xs[i] * size);
  cursor.setAttribute("y", i < 0 ? 0 : ys[i] * size);
  if (aloud && i >= 0) $("told").textContent = described(i);
};
const vertical = (i, step) => {
  const { wide, high, xs, ys, grid } = view.laid;
  for (let y = ys[i] + step; y >= 0 && y < high; y += step) {
    for (let off = 0; off < 4; off += 1) {
      for (const x of [xs[i] - off, xs[i] + off]) {
        if (x >= 0 && x < wide && grid[y * wide + x] >= 0) return grid[y * wide + x];
      }
    }
  }
  return i;
};
const MOVES = {
  ArrowRight: (i) => Math.min(i + 1, view.laid.count - 1), ArrowLeft: (i) => Math.max(i - 1, 0),
  ArrowDown: (i) => vertical(i, 1), ArrowUp: (i) => vertical(i, -1), Home: () => 0, End: () => view.laid.count - 1,
};
