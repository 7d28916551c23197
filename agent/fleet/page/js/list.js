// The list of nodes that are found, worst first, some at a time
const FIRST = 15, STEP = 50;
let listed = FIRST;

const signOf = (look) => {
  const svg = drawnAs("svg", { viewBox: "0 0 12 12", width: 12, height: 12, class: "sign", "aria-hidden": "true" });
  svg.append(drawnAs("path", { d: "M1 1" + scaled(shapes[look], 10), class: "look " + look }));
  return svg;
};
const rowOf = (node) => {
  const seen = facts.find((each) => each.key === "seen");
  const name = make("a", { href: "#n=" + encodeURIComponent(data.names[node]), "data-node": node, class: "mono" }, data.names[node]);
  return make("tr", {}, make("td", { class: "state" }, signOf(looked(node)), " " + looked(node)), make("td", {}, name),
    make("td", {}, why(node)), make("td", {}, labelled(classes, node)), make("td", {}, seen ? labelled(seen, node) : ""));
};
const list = () => {
  const rows = [];
  let hits = 0;
  for (const node of worstFirst) {
    if (view.mask && !view.mask[node]) continue;
    hits += 1;
    if (rows.length < listed) rows.push(rowOf(node));
  }
  $("hits").textContent = view.mask ? nodesInWords(hits) + " found" : "";
  $("all").hidden = !view.mask;
  const head = make("tr", {}, ...["", "node", "why", "class", "last seen"].map((each) => make("th", { scope: "col" }, each)));
  const table = make("table", { class: "who" }, make("thead", {}, head), make("tbody", {}, ...rows));
  const parts = [make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "nodes" }, table)];
  if (!rows.length) parts[0] = make("p", {}, "No node is found.");
  if (hits > rows.length) {
    const more = make("button", { type: "button" }, "Show " + Math.min(STEP, hits - rows.length) + " more of " + numbered(hits - rows.length));
    more.addEventListener("click", () => { listed += STEP; list(); });
    parts.push(more);
  }
  $("list").replaceChildren(...parts);
};
