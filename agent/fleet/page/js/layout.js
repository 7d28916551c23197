// Where cells are: groups as blocks of cells on one grid, side by side in lines
const LABEL = 12, GAP = 1; // pixels of a label's text; grid cells between blocks
const TALL = 760; // pixels that a map should not be much higher than

const natural = new Intl.Collator("en", { numeric: true });

const groupsOf = (arranged, kept) => {
  // [{label, cells}]: a cell is a node, or node * 64 + place of the rail in its list
  const groups = new Map();
  const put = (key, label, cell) => {
    if (!groups.has(key)) groups.set(key, { label, cells: [], row: longest && longest.get(key) });
    groups.get(key).cells.push(cell);
  };
  const by = arranged === "rails" ? started() : [...places, classes].find((each) => each.key === arranged);
  const longest = arranged === "rails" ? mostRails(by, kept) : null;
  for (let node = 0; node < N; node += 1) {
    if (kept && !kept[node]) continue;
    if (arranged === "leaves") {
      const named = (leaf) => (leaf < 0 ? "leaf not known" : rails.leaves[leaf]);
      railsOf(node).forEach(([, , leaf], at) => put(leaf, named(leaf), node * 64 + at));
    } else if (arranged === "rails") {
      if (!railsOf(node).length) continue;
      const code = by.codes[node], row = longest.get(code) || 0;
      for (let at = 0; at < row; at += 1) {
        put(code, code < 0 ? "not known" : by.labels[code], at < railsOf(node).length ? node * 64 + at : -1);
      }
    } else if (by) {
      put(by.codes[node], by.codes[node] < 0 ? "not known" : by.labels[by.codes[node]], node);
    } else {
      const label = data.names[node].replace(/\d.*$/s, "") || "0-9";
      put(label, label, node);
    }
  }
  const last = (each) => (/not known$/.test(each.label) ? 1 : 0);
  return [...groups.values()].sort((a, b) => last(a) - last(b) || natural.compare(a.label, b.label));
};

const mostRails = (by, kept) => {
  // of a node in each group: shorter rows end early, so that one rail stands below the other
  const most = new Map();
  for (let node = 0; node < N; node += 1) {
    if (kept && !kept[node]) continue;
    most.set(by.codes[node], Math.max(most.get(by.codes[node]) || 0, railsOf(node).length));
  }
  return most;
};
const started = () => {
  // how the map is arranged at first
  const key = $("arranged").querySelector("option[selected]").value;
  return [...places, classes].find((each) => each.key === key) || classes;
};

const blockOf = (group, arranged, size, wide, longest) => {
  // columns of cells and the room with the label, in grid cells
  const count = group.cells.length, label = Math.ceil(longest / size);
  if (arranged === "rails") {
    const columns = Math.min(wide, group.row);
    return [columns, Math.min(wide, Math.max(columns, label))];
  }
  if (count > wide * 12) return [wide, wide];
  const columns = Math.min(wide, count, Math.max(label, Math.ceil(Math.sqrt(count * 1.6))));
  return [columns, Math.min(wide, Math.max(columns, label))];
};
const heightOf = (groups, arranged, size, width, longest) => {
  // of the whole map, in pixels
  const wide = Math.max(8, Math.floor(width / size)), head = Math.ceil((LABEL + 4) / size);
  let x = 0, y = 0, tall = 0;
  for (const group of groups) {
    const [columns, room] = blockOf(group, arranged, size, wide, longest);
    if (x && x + room > wide) { x = 0; y += tall; tall = 0; }
    tall = Math.max(tall, head + Math.ceil(group.cells.length / columns) + GAP);
    x += room + GAP;
  }
  return (y + tall) * size;
};
const sizeOf = (groups, count, arranged, width, longest) => {
  // as big as lets the map be seen at once
  const least = count > 3e4 ? 5 : 7;
  let size = 18;
  while (size > least && heightOf(groups, arranged, size, width, longest) > TALL) size -= 1;
  return size;
};

const laidOut = (groups, arranged, width) => {
  const count = groups.reduce((sum, each) => sum + each.cells.filter((cell) => cell >= 0).length, 0);
  // few groups have room for long names
  const letters = groups.reduce((most, each) => Math.max(most, each.label.length), 0);
  const least = groups.length > 40 ? 92 : 160;
  const longest = Math.min(letters * 6.4 + 6, Math.max(least, Math.min(330, width / Math.max(1, groups.length) - 14)));
  const size = sizeOf(groups, count, arranged, width, longest);
  const wide = Math.max(8, Math.floor(width / size)), head = Math.ceil((LABEL + 4) / size);
  const cells = new Int32Array(count), xs = new Int32Array(count), ys = new Int32Array(count);
  const labels = [];
  let x = 0, y = 0, tall = 0, at = 0;
  for (const group of groups) {
    const [columns, room] = blockOf(group, arranged, size, wide, longest);
    const rows = Math.ceil(group.cells.length / columns);
    if (x && x + room > wide) { x = 0; y += tall; tall = 0; }
    labels.push({ x, y, room, text: group.label });
    group.cells.forEach((cell, place) => {
      if (cell < 0) return;
      cells[at] = cell;
      xs[at] = x + (place % columns);
      ys[at] = y + head + Math.floor(place / columns);
      at += 1;
    });
    tall = Math.max(tall, head + rows + GAP);
    x += room + GAP;
  }
  const high = y + tall, grid = new Int32Array(wide * Math.max(high, 1)).fill(-1);
  for (let i = 0; i < count; i += 1) grid[ys[i] * wide + xs[i]] = i;
  return { count, size, wide, high, cells, xs, ys, labels, grid };
};
