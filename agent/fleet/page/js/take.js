// What a person takes along: host lists, a command that drains them, a table
const shortName = (node) => data.names[node].slice(data.names[node].lastIndexOf("/") + 1);
// What a tool or a shell would take for more than a letter, as a URL has it: agent/fleet/hostlist.py reads it
const quotedName = (text) => text.replace(/[^\p{L}\p{N}_.:+-]/gu, (letter) =>
  [...new TextEncoder().encode(letter)].map((byte) => "%" + byte.toString(16).toUpperCase().padStart(2, "0")).join(""));
const foldedHosts = (nodes) => {
  // gpu[001-004,007]: names that differ in their last number only, of one length; a cluster's name is left out
  const families = new Map();
  for (const node of nodes) {
    const [, start, digits, end] = shortName(node).match(/^(.*?)(\d*)(\D*)$/);
    const key = JSON.stringify([start, end, digits.length]);
    if (!families.has(key)) families.set(key, { start, end, width: digits.length, numbers: [] });
    if (digits) families.get(key).numbers.push(Number(digits));
  }
  const texts = [];
  for (const { start, end, width, numbers } of families.values()) {
    numbers.sort((a, b) => a - b);
    const runs = [];
    for (const number of numbers) {
      const last = runs[runs.length - 1];
      if (last && number <= last[1] + 1) last[1] = number; else runs.push([number, number]);
    }
    const padded = (number) => String(number).padStart(width, "0");
    const ranges = runs.map(([low, high]) => (low === high ? padded(low) : padded(low) + "-" + padded(high)));
    const one = runs.length === 1 && runs[0][0] === runs[0][1];
    const text = quotedName(start) + (!width ? "" : one ? ranges[0] : "[" + ranges.join(",") + "]") + quotedName(end);
    texts.push(text.replace(/^-/, "%2D")); // a tool would take it for an option
  }
  return texts.join(",");
};
const quoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";
const drainCommand = (nodes, reason) => {
  const known = nodes.filter((node) => /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(shortName(node)));
  const left = nodes.length - known.length;
  const note = left ? "# no command for " + left + (left === 1 ? " node" : " nodes") + " with a name that Slurm would not take" : "";
  if (!known.length) return note;
  return "scontrol update NodeName=" + quoted(foldedHosts(known)) + " State=DRAIN Reason=" +
    quoted("fabricscope: " + reason) + (note && "  " + note);
};
const csvCell = (text) => '"' + (/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replaceAll('"', '""') + '"';
const csvTable = (nodes) => {
  const seen = facts.find((column) => column.key === "seen");
  const rows = nodes.map((node) => [data.names[node], looked(node), why(node), labelled(classes, node),
    ...places.map((column) => labelled(column, node)), seen ? labelled(seen, node) : ""]);
  const titles = ["node", "state", "findings", "class", ...places.map((column) => column.title), "last report"];
  return [titles, ...rows].map((cells) => cells.map((cell) => csvCell(String(cell))).join(",") + "\r\n").join("");
};
const masked = (mask) => [...worstFirst].filter((node) => !mask || mask[node]);
const copyText = async (text) => {
  try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed from a file: by selection */ }
  const area = make("textarea", {}, text);
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
};
const copyBy = async (button, text) => {
  const title = button.textContent;
  button.textContent = (await copyText(text)) ? "Copied" : "Not copied";
  setTimeout(() => { button.textContent = title; }, 1500);
};
const download = (name, text) => {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};
const wireTaking = () => {
  document.querySelectorAll(".copies").forEach((button) => button.addEventListener("click", () =>
    copyBy(button, foldedHosts(masked(spansOf(button.dataset.nodes))))));
  document.querySelectorAll(".drains").forEach((button) => button.addEventListener("click", () =>
    copyBy(button, drainCommand(masked(spansOf(button.dataset.nodes)), button.dataset.about))));
  $("hosts").addEventListener("click", () => copyBy($("hosts"), foldedHosts(masked(view.mask))));
  $("drain").addEventListener("click", () => copyBy($("drain"), drainCommand(masked(view.mask), pickedAbout || $("find").value)));
  $("link").addEventListener("click", () => copyBy($("link"), location.href));
  $("csv").addEventListener("click", () => download("nodes.csv", csvTable(masked(view.mask))));
};
