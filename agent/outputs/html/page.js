"use strict";
(() => {
  const root = document.documentElement, panel = document.getElementById("panel");
  const machine = document.querySelector(".machine");
  let opener = null;
  root.classList.add("js");

  const wanted = ["auto", "light", "dark"], button = document.getElementById("theme");
  button.addEventListener("click", () => {
    const next = wanted[(wanted.indexOf(root.dataset.theme || "auto") + 1) % 3];
    root.dataset.theme = next;
    button.textContent = "Theme: " + next;
  });

  const close = () => {
    panel.hidden = true;
    document.querySelectorAll(".chosen").forEach((each) => each.classList.remove("chosen"));
    if (opener) opener.focus();
    opener = null;
  };
  const open = (box) => {
    const device = document.getElementById("d-" + box.dataset.key);
    if (!device) return false;
    document.querySelectorAll(".chosen").forEach((each) => each.classList.remove("chosen"));
    box.classList.add("chosen");
    const title = document.createElement("h2");
    title.textContent = box.getAttribute("aria-label").split(",")[0];
    const body = device.querySelector(".body").cloneNode(true);
    panel.querySelector(".inside").replaceChildren(title, body);
    panel.hidden = false;
    opener = box;
    panel.querySelector("button").focus();
    return true;
  };
  panel.querySelector("button").addEventListener("click", close);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !panel.hidden) close(); });
  document.querySelectorAll(".machine a[data-key]").forEach((box) => {
    box.addEventListener("click", (event) => { if (open(box)) event.preventDefault(); });
  });
  document.querySelectorAll('.machine .wire[data-place]').forEach((wire) => {
    const box = machine.querySelector('a[data-key="' + CSS.escape(wire.dataset.of) + '"]');
    if (box) { wire.style.cursor = "pointer"; wire.addEventListener("click", () => open(box)); }
  });

  const trace = (hops) => {
    const places = new Set(hops);
    machine.classList.toggle("tracing", hops.length > 0);
    machine.querySelectorAll(".wire").forEach((wire) => wire.classList.toggle("on", places.has(wire.dataset.place)));
  };
  if (machine) {
    document.querySelectorAll("td[data-hops]").forEach((cell) => {
      cell.addEventListener("mouseenter", () => trace(cell.dataset.hops.split(" ")));
      cell.addEventListener("mouseleave", () => trace([]));
    });
    machine.querySelectorAll("a[data-way]").forEach((box) => {
      for (const start of ["mouseenter", "focus"]) box.addEventListener(start, () => trace(box.dataset.way.split(" ")));
      for (const end of ["mouseleave", "blur"]) box.addEventListener(end, () => trace([]));
    });
  }

  const show = () => {
    const at = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const around = at && at.closest("details");
    if (around) { around.open = true; at.scrollIntoView(); }
  };
  addEventListener("hashchange", show);
  show();
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
})();
