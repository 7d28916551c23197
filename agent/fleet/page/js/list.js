// The list of nodes that are found, worst first, some at a time
const FIRST = 15, STEP = 50;
let listed = FIRST;

const rowOf = (node) => {
  const seen = facts.find((each) => each.key === "seen");
  const address = "#n=" + encodeURIComponent(data.names[node]);
  const name = make("a", { href: address, "data-node": node, class: "mono" }, data.names[node]);
  const state = make("td", { class: "state" }, signOf(looked(node)), " " + looked(node));
  const rest = [why(node), labelled(classes, node), seen ? labelled(seen, node) : ""];
  const past = days.labels.length ? [make("td", { class: "past" }, spark(node), ...marks(node))] : [];
  return make("tr", {}, state, make("td", {}, name), ...rest.map((each) => make("td", {}, each)), ...past);
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
  const titles = ["", "node", "why", "class", "last seen", ...(days.labels.length ? [days.title] : [])];
  const head = make("tr", {}, ...titles.map((each) => make("th", { scope: "col" }, each)));
  const table = make("table", { class: "who" }, make("thead", {}, head), make("tbody", {}, ...rows));
  const parts = [make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "nodes" }, table)];
  if (!rows.length) parts[0] = make("p", {}, "No node is found.");
  if (hits > rows.length) {
    const left = hits - rows.length;
    const more = make("button", { type: "button" }, "Show " + Math.min(STEP, left) + " more of " + numbered(left));
    more.addEventListener("click", () => { listed += STEP; list(); });
    parts.push(more);
  }
  $("list").replaceChildren(...parts);
};
