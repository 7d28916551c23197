// What a person does
document.documentElement.classList.add("js");
const theme = $("theme"), THEMES = ["auto", "light", "dark"];
theme.addEventListener("click", () => {
  const root = document.documentElement, next = THEMES[(THEMES.indexOf(root.dataset.theme || "auto") + 1) % 3];
  root.dataset.theme = next;
  theme.textContent = "Theme: " + next;
});

const colours = () => {
  const option = (value, text) => make("option", { value }, text), options = [option("verdict", "by verdict")];
  if (isRails()) {
    if (rails.rates.length) options.push(option("rate/", "by the rail's rate"));
    if (rails.links.length) options.push(option("link/", "by the rail's PCIe link"));
  }
  const group = (label, all) => { if (all.length) options.push(make("optgroup", { label }, ...all)); };
  group("by", metrics.map((each, at) => option("metric/" + at, each.title)));
  const ended = (letter) => data.rules.map((_, at) => data.vectors.some((each) => each[at] === letter));
  const failed = ended("f"), unknown = ended("u");
  const rules = (fits) => data.rules.flatMap((name, at) => (fits(at) ? [option("rule/" + at, name)] : []));
  group("rule that failed somewhere", rules((at) => failed[at]));
  group("rule not judged somewhere", rules((at) => !failed[at] && unknown[at]));
  $("coloured").replaceChildren(...options);
  $("coloured").value = view.coloured;
  if (!$("coloured").value) $("coloured").value = view.coloured = "verdict";
};

let picked = null, pickedAbout = "", pickedLook = "";
// What is chosen stands in the address: a link to a view, and the page after a reload
const DEFAULTS = () => ({ find: "", is: "", card: "", by: $("arranged").options[0]?.value || "", colour: "verdict", only: "" });
const viewOf = () => ({ find: $("find").value, is: pickedLook, card: picked && !pickedLook ? pickedAbout : "",
  by: view.arranged, colour: view.coloured, only: view.only ? "1" : "" });
const keepView = () => {
  const usual = DEFAULTS(), chosen = Object.entries(viewOf()).filter(([name, value]) => value !== usual[name]);
  const hash = chosen.length ? "#v=" + encodeURIComponent(JSON.stringify(Object.fromEntries(chosen))) : "";
  history.replaceState(null, "", location.pathname + location.search + hash);
};
const choose = (select, value) => {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
  return select.value;
};
const takeView = (hash) => {
  let given;
  try { given = JSON.parse(decodeURIComponent(hash.slice(3))); } catch { return; }
  if (!given || typeof given !== "object") return;
  const text = (name) => (typeof given[name] === "string" ? given[name].slice(0, CUT) : DEFAULTS()[name]);
  view.arranged = choose($("arranged"), text("by"));
  view.coloured = text("colour");
  colours();
  $("only").checked = view.only = text("only") === "1";
  const card = [...document.querySelectorAll(".shows")].find((each) => text("card") && each.dataset.about === text("card"));
  const index = LOOKS.indexOf(text("is"));
  pickedLook = index < 0 ? "" : LOOKS[index];
  picked = pickedLook ? Uint8Array.from(look, (code) => (code === index ? 1 : 0)) : card ? spansOf(card.dataset.nodes) : null;
  pickedAbout = pickedLook ? pickedLook.replaceAll("_", " ") : card ? card.dataset.about : "";
  $("find").value = text("find");
  find();
  arrange();
};
const find = () => {
  pressed(pickedLook);
  view.mask = matching($("find").value, picked);
  $("drain").hidden = (!picked && !$("find").value) || !look.some((each, node) => LOOKS[each] === "critical" && (!view.mask || view.mask[node]));
  listed = FIRST;
  list();
  if (pickedAbout) $("hits").textContent += ": " + pickedAbout;
  if (view.only) arrange(); else paint();
  if (!location.hash.startsWith("#n=")) keepView();
};
const pressed = (look) => document.querySelectorAll(".counts button").forEach((count) =>
  count.setAttribute("aria-pressed", String(count.dataset.look === look)));
const filterBy = (wanted) => {
  const again = pickedLook === wanted;
  pickedLook = again ? "" : wanted;
  picked = again ? null : Uint8Array.from(look, (code) => (LOOKS[code] === wanted ? 1 : 0));
  pickedAbout = again ? "" : wanted.replaceAll("_", " ");
  $("find").value = "";
  find();
};
const shown = (button) => {
  pickedLook = "";
  picked = spansOf(button.dataset.nodes);
  pickedAbout = button.dataset.about;
  $("find").value = "";
  find();
  $("map").scrollIntoView();
  $("drawn").focus({ preventScroll: true });
};
const byHash = () => {
  if (location.hash.startsWith("#v=")) { shut(); return takeView(location.hash); }
  if (!location.hash.startsWith("#n=")) return shut();
  let name = "";
  try { name = decodeURIComponent(location.hash.slice(3)); } catch { return shut(); }
  const node = data.names.indexOf(name);
  if (node >= 0) opened(node, document.activeElement === document.body ? null : document.activeElement);
};
const hover = (event) => {
  const i = cellAt(event), tip = $("tip");
  tip.hidden = i < 0;
  if (i < 0) return;
  tip.textContent = described(i);
  const stage = tip.parentNode.getBoundingClientRect(), left = event.clientX - stage.left;
  tip.style.left = Math.max(0, Math.min(left + 12, stage.width - tip.offsetWidth)) + "px";
  tip.style.top = event.clientY - stage.top + 16 + "px";
};
const wire = () => {
  const drawn = $("drawn");
  view.arranged = $("arranged").value;
  $("arranged").addEventListener("change", () => { view.arranged = $("arranged").value; colours(); arrange(); keepView(); });
  $("coloured").addEventListener("change", () => { view.coloured = $("coloured").value; paint(); keepView(); });
  $("only").addEventListener("change", () => { view.only = $("only").checked; arrange(); keepView(); });
  $("all").addEventListener("click", () => {
    picked = null;
    pickedAbout = pickedLook = $("find").value = "";
    find();
    $("find").focus();
  });
  let waiting = 0;
  $("find").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(find, N > 2e4 ? 150 : 40); });
  drawn.addEventListener("mousemove", hover);
  drawn.addEventListener("mouseleave", () => { $("tip").hidden = true; });
  drawn.addEventListener("click", (event) => {
    const i = cellAt(event);
    if (i < 0) return;
    goTo(i);
    $("tip").hidden = true;
    opened(nodeOf(view.laid.cells[i]), drawn);
  });
  drawn.addEventListener("keydown", (event) => {
    if (!view.laid || !view.laid.count) return;
    if (event.key === "Enter" && view.at >= 0) opened(nodeOf(view.laid.cells[view.at]), drawn);
    else if (Object.hasOwn(MOVES, event.key)) goTo(view.at < 0 ? 0 : MOVES[event.key](view.at));
    else return;
    event.preventDefault();
  });
  let width = drawn.clientWidth;
  addEventListener("resize", () => { if (drawn.clientWidth !== width) { width = drawn.clientWidth; arrange(); } });
  document.querySelectorAll(".shows").forEach((each) => each.addEventListener("click", () => shown(each)));
  document.querySelectorAll(".counts li").forEach((item) => {
    const count = make("button", { type: "button", "data-look": item.dataset.look, "aria-pressed": "false" }, ...item.childNodes);
    count.addEventListener("click", () => filterBy(item.dataset.look));
    item.replaceChildren(count);
  });
  wireTaking();
  colours();
  arrange();
  list();
};
panel.querySelector("button").addEventListener("click", shut);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") shut(); });
addEventListener("hashchange", byHash);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
if (N) { wire(); byHash(); }
