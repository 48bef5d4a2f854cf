"use strict";
(() => {
  const box = document.getElementById("why");
  const what = box.querySelector(".what");
  const trail = box.querySelector("nav");
  const path = [];

  const target = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const labelOf = (entry) => entry.querySelector(".label").textContent;

  function show() {
    const entry = document.getElementById(path[path.length - 1]);
    const copy = entry.cloneNode(true);
    copy.removeAttribute("id");
    copy.setAttribute("tabindex", "-1");
    what.replaceChildren(copy);
    trail.replaceChildren();
    path.slice(0, -1).forEach((id, index) => {
      const step = document.createElement("button");
      step.type = "button";
      step.textContent = labelOf(document.getElementById(id));
      step.addEventListener("click", () => { path.length = index + 1; show(); });
      trail.append(step, " › ");
    });
    const here = document.createElement("span");
    here.textContent = path.length > 1 ? "here" : "Why this number";
    trail.append(here);
    if (!box.open) box.showModal();
    box.scrollTop = 0;
    copy.focus({ preventScroll: true });
  }

  function open(link) {
    const entry = target(link);
    if (!entry) return false;
    if (!box.contains(link)) path.length = 0;
    const before = path.indexOf(entry.id);
    if (before >= 0) path.length = before;
    path.push(entry.id);
    show();
    return true;
  }

  document.querySelectorAll("a.n").forEach((link) => {
    link.setAttribute("role", "button");
    link.setAttribute("aria-haspopup", "dialog");
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.n");
    if (link && !event.ctrlKey && !event.metaKey && open(link)) event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const link = event.key === " " && event.target.closest && event.target.closest("a.n");
    if (link && open(link)) event.preventDefault();
    if (event.key === "Backspace" && box.open && path.length > 1) {
      event.preventDefault();
      path.pop();
      show();
    }
  });
  box.querySelector(".close").addEventListener("click", () => box.close());
  box.addEventListener("click", (event) => { if (event.target === box) box.close(); });

  function sortable(table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending";
        table.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column];
          return "v" in cell.dataset ? Number(cell.dataset.v) : null;
        };
        const order = (a, b) => {
          const x = key(a);
          const y = key(b);
          if (x !== null && y !== null) return (x - y) * (up ? 1 : -1);
          if (x !== null || y !== null) return x === null ? 1 : -1;
          const words = a.cells[column].textContent.localeCompare(b.cells[column].textContent);
          return up ? -words : words;
        };
        body.append(...rows.sort(order));
      });
    });
  }
  document.querySelectorAll("table.sortable").forEach(sortable);

  const sections = [...document.querySelectorAll("details.section:not(#numbers)")];
  const everything = document.createElement("button");
  everything.type = "button";
  everything.className = "openall";
  everything.textContent = "Open all sections";
  everything.addEventListener("click", () => {
    const open = sections.some((part) => !part.open);
    sections.forEach((part) => { part.open = open; });
    everything.textContent = open ? "Close all sections" : "Open all sections";
  });
  document.getElementById("sections").prepend(everything);

  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Filter by name or label";
  search.setAttribute("aria-label", "Filter the numbers by name or label");
  search.className = "filter";
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    document.querySelectorAll("#numbers section.group").forEach((group) => {
      let any = false;
      group.querySelectorAll("article").forEach((entry) => {
        const text = labelOf(entry) + " " + entry.querySelector("code").textContent;
        entry.hidden = !text.toLowerCase().includes(wanted);
        any = any || !entry.hidden;
      });
      group.hidden = !any;
    });
  });
  document.querySelector("#numbers > .body").prepend(search);

  const start = location.hash && target(location);
  if (start && start.classList.contains("q")) {
    path.push(start.id);
    show();
  }

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.section:not([open]):not(.offpaper), details.more:not([open])")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));

  window.ridgelineCharts = () => {
    document.querySelectorAll("figure.chart").forEach((figure) => {
      const spec = figure.querySelector("script.spec");
      if (!spec) return;
      const plot = figure.querySelector(".plot");
      const fixed = plot.querySelector(".static");
      const draw = () => {
        const live = document.createElement("div");
        live.className = "live";
        plot.append(live);
        const options = { renderer: "svg", actions: false, logLevel: 1, tooltip: { theme: "custom" } };
        window.vegaEmbed(live, JSON.parse(spec.textContent), options).then(
          () => fixed.remove(),
          () => live.remove(),
        );
      };
      const seen = new IntersectionObserver((entries) => {
        if (entries.some((entry) => entry.isIntersecting)) {
          seen.disconnect();
          draw();
        }
      }, { rootMargin: "200px" });
      seen.observe(plot);
    });
  };
})();
