// What is known of one node, at the side
const panel = $("panel");
let opener = null;

const shut = () => {
  if (panel.hidden) return;
  panel.hidden = true;
  if (location.hash.startsWith("#n=")) keepView();
  if (opener && opener.isConnected) opener.focus();
  opener = null;
};
const terms = (rows) => make("dl", {}, ...rows.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
const stepsOf = (text) => { // of a fix, which a report has as one text with numbers
  const list = [text.replace(/^1\. /, "")];
  for (let mark; text.startsWith("1. ") && list.at(-1).includes(mark = ` ${list.length + 1}. `);) {
    const last = list.pop(), end = last.indexOf(mark);
    list.push(last.slice(0, end), last.slice(end + mark.length));
  }
  return list.length > 1 ? make("ol", {}, ...list.map((step) => make("li", {}, step))) : text;
};
const finding = (each) => {
  const text = (at) => data.texts[each[at]], severity = SEVERITIES[each[1]] || "unknown";
  const badge = make("span", { class: "badge " + severity }, severity);
  const head = make("header", {}, badge, make("span", {}, text(2)), make("code", {}, text(7)));
  if (isSilenced(each)) head.append(make("span", {}, text(8)));
  const rows = [];
  for (let at = 0; each[6] && at < each[6].length; at += 3) {
    const [what, value, source] = each[6].slice(at, at + 3).map((place) => data.texts[place]);
    const cells = [[null, what], ["mono", value], ["mono dim", source]];
    rows.push(make("tr", {}, ...cells.map(([kind, said]) => make("td", { class: kind }, said))));
  }
  const seen = each[6] ? make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, ...rows)))
    : make("p", { class: "dim" }, "Its evidence is in the node's own report: this page had no room for it.");
  return make("article", { class: "finding " + severity + (isSilenced(each) ? " quiet" : "") }, head, make("p", { class: "what" }, text(3)), seen,
    terms([["impact", text(4)], ["fix", text(5) && stepsOf(text(5))]].filter(([, said]) => said)));
};
const saidOf = (node) => [...document.querySelectorAll("main .plain .shows, main td .shows")]
  .filter((each) => spansOf(each.dataset.nodes)[node]).map((each) => each.dataset.about);

const MOST = 200; // findings of one node
const findings = (node) => {
  const all = reportedBy(node).sort((a, b) => isSilenced(a) - isSilenced(b) || b[1] - a[1]), left = all.length - MOST;
  return [...all.slice(0, MOST).map(finding), ...(left > 0 ? [make("p", {}, "and " + numbered(left) + " more")] : [])];
};

const opened = (node, from) => {
  const inside = panel.querySelector(".inside"), heading = make("h2", { tabindex: -1 }, data.names[node]);
  const part = (title, ...children) => (children.length ? [make("h3", {}, title), ...children] : []);
  const state = make("p", {}, signOf(looked(node)), " ", make("b", {}, looked(node)),
    stale[node] ? ", stale: this is its last report" : "");
  const own = data.pages[node] ? [make("p", {}, make("a", { href: data.pages[node] }, "Its own page"))] : [];
  const where = [classes, ...places].map((each) => [each.title, labelled(each, node)]);
  const fact = facts.map((each) => [each.title, labelled(each, node)]);
  const said = [...new Set(saidOf(node))].map((each) => make("p", {}, each));
  const lines = lineBy[node] < 0 ? [] : data.lines[lineBy[node]].map((each) => make("p", { class: "mono" }, each));
  const none = unjudgedBy[node] < 0 ? [] : data.unjudged[unjudgedBy[node]].map((each) => make("p", {}, each));
  const drawing = spark(node), past = drawing ? [make("p", { class: "past" }, drawing, " " + days.title)] : [];
  const changes = changesOf(node).map((each) => make("p", { class: "change" }, each));
  inside.replaceChildren(heading, state, ...past, ...own, terms(where), ...part("Last 24 hours", ...changes),
    ...part("Findings", ...findings(node)),
    ...part("In the fleet", ...said), ...part("GPUs, rails and links", ...lines),
    ...part("Versions and settings", terms(fact)), ...part("Could not check", ...none));
  panel.hidden = false;
  panel.scrollTop = 0;
  opener = from;
  heading.focus();
};
