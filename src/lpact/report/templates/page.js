"use strict";
// Filters, hovering, the evidence of a claim, copying. Text from data is only ever set as text.
(() => {
  const one = (query, root = document) => root.querySelector(query);
  const all = (query, root = document) => Array.from(root.querySelectorAll(query));
  const make = (tag, text, className) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const root = document.documentElement;
  root.classList.add("scripted");

  // Theme: as the system has it, light, or dark.
  const themes = ["auto", "light", "dark"];
  const button = one("#theme");
  let theme = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    if (theme) root.dataset.theme = themes[theme];
    else delete root.dataset.theme;
    button.textContent = "Theme: " + themes[theme];
  });

  // Filters: figures fade what does not match, the table of claims hides it; the address keeps them.
  const filters = one("#filters");
  const marks = all(".m");
  const rows = all(".claim-table tbody tr");
  const byProfile = all(".claim-table [data-profile]");
  const searches = all(".search");
  const shown = one("#shown");
  const names = all("select", filters).map((own) => own.name).filter((name) => name !== "profile");
  filters.hidden = false;
  for (const own of all(".tools")) own.hidden = false;

  const chosen = () => {
    const values = {};
    for (const name of [...names, "profile"]) values[name] = filters.elements[name].value;
    values.search = searches[0].value.trim().toLowerCase();
    return values;
  };
  const fits = (data, values) =>
    names.every((name) => !values[name] || data[name] === undefined || data[name] === values[name]);
  const apply = () => {
    const values = chosen();
    for (const mark of marks) {
      const other = values.profile && mark.dataset.profile && mark.dataset.profile !== values.profile;
      mark.classList.toggle("off", other || !fits(mark.dataset, values));
    }
    for (const cell of byProfile) {
      cell.hidden = Boolean(values.profile && cell.dataset.profile) && cell.dataset.profile !== values.profile;
    }
    let n = 0;
    for (const row of rows) {
      const text = values.search && !row.textContent.toLowerCase().includes(values.search);
      row.hidden = text || !fits(row.dataset, values);
      if (row.hidden) close(row);
      n += row.hidden ? 0 : 1;
    }
    const limited = Object.values(values).some(Boolean);
    shown.textContent = limited ? n + " of " + rows.length + " claims" : "";
    return values;
  };
  const keep = () => {
    const values = apply();
    const kept = new URLSearchParams(Object.entries(values).filter((pair) => pair[1]));
    history.replaceState(null, "", kept.size ? "#" + kept : location.pathname + location.search);
  };
  const restore = () => {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const name of [...names, "profile"]) if (kept.has(name)) filters.elements[name].value = kept.get(name);
    if (kept.has("search")) for (const own of searches) own.value = kept.get("search");
    apply();
    if (kept.has("claim")) {
      const row = rows.find((own) => own.dataset.claim === kept.get("claim"));
      if (row) { open(row); row.scrollIntoView({ block: "center" }); }
    }
  };
  filters.addEventListener("change", keep);
  filters.addEventListener("submit", (event) => event.preventDefault());
  filters.addEventListener("reset", () => {
    for (const own of searches) own.value = "";
    setTimeout(keep);
  });
  // One search for all tables: what is typed in one is shown in the others.
  for (const own of searches) {
    own.addEventListener("input", () => {
      for (const other of searches) other.value = own.value;
      keep();
    });
  }

  // Hovering over a mark shows the rows that it represents.
  const tip = one("#tip");
  const place = (event) => {
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, innerWidth - box.width - 6);
    const top = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 16;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest(".m") : null;
    tip.hidden = !mark || mark.classList.contains("off");
    if (!tip.hidden) { tip.textContent = mark.getAttribute("aria-label"); place(event); }
  });
  document.addEventListener("pointermove", (event) => { if (!tip.hidden) place(event); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  // A claim opens to its evidence.
  let parsed = null;
  const evidenceOf = (table) => {
    parsed = parsed || JSON.parse(one("#evidence").textContent);
    return parsed[table.dataset.analysis];
  };
  const chain = (row) => {
    const evidence = evidenceOf(row.closest("table"));
    const box = make("div", undefined, "chains");
    for (const [profile, called] of Object.entries(evidence.profiles)) {
      const part = make("div");
      if (profile) part.append(make("h4", called + " (" + profile + ")"));
      const verdict = one('td[data-reason][data-profile="' + profile + '"]', row);
      if (verdict) part.append(make("p", verdict.dataset.reason));
      const list = make("ul");
      let last = null;
      for (const index of (evidence.claims[row.dataset.at] || {})[profile] || []) {
        const [gate, passed, sentence] = evidence.criteria[index];
        if (gate !== last) {
          const head = make("li");
          head.append(make("b", gate.replaceAll("_", " ")));
          list.append(head);
          last = gate;
        }
        const item = make("li");
        const sign = make("span", passed ? "● " : "× ", passed ? "pass" : "fail");
        sign.setAttribute("role", "img");
        sign.setAttribute("aria-label", passed ? "pass: " : "fail: ");
        item.append(sign, sentence);
        list.append(item);
      }
      part.append(list);
      box.append(part);
    }
    return box;
  };
  const toggle = (row) => one(".open-claim", row);
  const close = (row) => {
    if (!row.classList.contains("open")) return;
    row.classList.remove("open");
    row.nextElementSibling.remove();
    toggle(row).setAttribute("aria-expanded", "false");
  };
  const open = (row) => {
    if (row.classList.contains("open")) return;
    const cell = make("td");
    cell.colSpan = row.cells.length;
    cell.append(chain(row));
    const more = make("tr", undefined, "chain");
    more.append(cell);
    row.after(more);
    row.classList.add("open");
    toggle(row).setAttribute("aria-expanded", "true");
  };
  for (const row of rows) {
    const head = one("th", row);
    const opener = make("button", head.textContent, "open-claim");
    opener.type = "button";
    opener.setAttribute("aria-expanded", "false");
    head.replaceChildren(opener);
    row.classList.add("row");
    row.addEventListener("click", () => {
      if (row.classList.contains("open")) close(row);
      else open(row);
    });
  }

  // What is shown, as CSV.
  const quoted = (text) => (/[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  for (const button of all(".download")) button.addEventListener("click", () => {
    const table = one(".claim-table", button.closest("p").nextElementSibling);
    const values = chosen();
    const profiles = Object.keys(evidenceOf(table).profiles);
    const letters = all("thead tr:last-child th", table).map((own) => own.textContent.trim());
    const columns = all("thead tr:first-child th[rowspan]", table).map((own) => own.textContent.trim().toLowerCase());
    const each = letters.length / profiles.length;
    for (const profile of profiles.filter((own) => !values.profile || !own || own === values.profile)) {
      for (const letter of letters.slice(0, each)) columns.push((profile ? profile + "_" : "") + letter.toLowerCase());
    }
    const lines = [columns.map(quoted).join(",")];
    for (const row of all("tbody tr.row", table).filter((own) => !own.hidden)) {
      const cells = Array.from(row.cells).filter((own) => !own.hidden);
      lines.push(cells.flatMap((own) => {
        const sign = one("[role=img]", own);
        const label = one(".label", own);
        const text = sign ? sign.getAttribute("aria-label") : label ? label.dataset.code : own.textContent.trim();
        return Array(own.colSpan).fill(quoted(text));
      }).join(","));
    }
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
    link.download = "claims.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });

  // Copying; where the browser forbids it, the text is selected instead.
  for (const own of all(".copy")) {
    own.hidden = false;
    own.addEventListener("click", async () => {
      const text = own.nextElementSibling;
      try {
        await navigator.clipboard.writeText(text.textContent);
        own.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(text);
        own.textContent = "Selected";
      }
      setTimeout(() => { own.textContent = "Copy"; }, 1500);
    });
  }
  // Print what is folded, too.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const own of folded) own.open = true;
  });
  addEventListener("afterprint", () => { for (const own of folded) own.open = false; });
  addEventListener("hashchange", restore);
  restore();
})();
