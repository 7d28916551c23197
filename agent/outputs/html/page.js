"use strict";
(() => {
  const root = document.documentElement, panel = document.getElementById("panel");
  const machine = document.querySelector(".machine");
  const all = (selector) => document.querySelectorAll(selector);
  let opener = null;
  root.classList.add("js");

  const themes = ["auto", "light", "dark"], button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "auto") + 1) % 3];
    root.dataset.theme = next;
    button.textContent = "Theme: " + next;
  });

  const copyBySelection = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const copied = document.execCommand("copy");
    area.remove();
    return copied;
  };
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { return copyBySelection(text); }
  };
  document.addEventListener("click", async (event) => {
    const copier = event.target.closest(".copy");
    if (!copier) return;
    const copied = await copy(copier.previousElementSibling.textContent);
    copier.textContent = copied ? "Copied" : "Not copied";
    setTimeout(() => { copier.textContent = "Copy"; }, 2000);
  });

  const close = () => {
    panel.hidden = true;
    all(".chosen").forEach((box) => box.classList.remove("chosen"));
    if (opener) opener.focus();
    opener = null;
  };
  const open = (from, title, body) => {
    all(".chosen").forEach((box) => box.classList.remove("chosen"));
    from.classList.add("chosen");
    const heading = document.createElement("h2");
    heading.textContent = title;
    panel.querySelector(".inside").replaceChildren(heading, body.cloneNode(true));
    panel.hidden = false;
    panel.scrollTop = 0;
    opener = panel.contains(from) ? opener : from;
    panel.querySelector("button").focus();
  };
  const openBox = (box) => {
    const device = document.getElementById("d-" + box.dataset.key);
    if (!device) return false;
    open(box, box.getAttribute("aria-label").split(",")[0], device.querySelector(".body"));
    return true;
  };
  panel.querySelector("button").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
  all(".machine a[data-key]").forEach((box) => {
    box.addEventListener("click", (event) => { if (openBox(box)) event.preventDefault(); });
  });
  all(".machine .wire[data-place]").forEach((wire) => {
    const box = machine.querySelector('a[data-key="' + CSS.escape(wire.dataset.of) + '"]');
    if (box) wire.addEventListener("click", () => openBox(box));
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.rule");
    const page = link && document.getElementById(link.hash.slice(1));
    if (!page) return;
    event.preventDefault();
    open(link, page.querySelector("h3").textContent, page.querySelector(".body"));
  });

  const toggle = (detail, shown) => {
    detail.classList.toggle("open", shown);
    detail.previousElementSibling.querySelector(".opens").setAttribute("aria-expanded", String(shown));
  };
  all("tr.device").forEach((row) => row.addEventListener("click", (event) => {
    if (event.target.closest("a:not(.opens)") || String(getSelection())) return;
    event.preventDefault();
    toggle(row.nextElementSibling, !row.nextElementSibling.classList.contains("open"));
  }));

  const trace = (hops) => {
    const places = new Set(hops);
    machine.classList.toggle("tracing", hops.length > 0);
    machine.querySelectorAll(".wire").forEach((wire) => wire.classList.toggle("on", places.has(wire.dataset.place)));
  };
  if (machine) {
    all("td[data-hops]").forEach((cell) => {
      cell.addEventListener("mouseenter", () => trace(cell.dataset.hops.split(" ")));
      cell.addEventListener("mouseleave", () => trace([]));
    });
    machine.querySelectorAll("a[data-way]").forEach((box) => {
      for (const start of ["mouseenter", "focus"]) box.addEventListener(start, () => trace(box.dataset.way.split(" ")));
      for (const end of ["mouseleave", "blur"]) box.addEventListener(end, () => trace([]));
    });
  }

  const show = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const around = target.closest("details");
    if (around) around.open = true;
    if (target.matches("tr.detail")) toggle(target, true);
    if (target.matches(".rule-panel")) open(document.body, target.querySelector("h3").textContent, target.querySelector(".body"));
    target.scrollIntoView({ block: "nearest" });
  };
  addEventListener("hashchange", show);
  show();
})();
