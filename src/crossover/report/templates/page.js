"use strict";
// Progressive: without this script every table is there, in the order of the report.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  if (!body || body.rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].map((row) => [key(row.cells[index]), row]);
      rows.sort(([a], [b]) => compare(a, b, up));
      body.append(...rows.map(([, row]) => row));
    });
  });
}

function key(cell) {
  const text = cell.dataset.v ?? cell.firstChild?.textContent ?? "";
  const value = Number(text.replaceAll(",", ""));
  return text !== "" && Number.isFinite(value) ? value : text;
}

// Numbers before words, and words (a dash, "withheld") last in either direction.
function compare(a, b, up) {
  const kinds = (typeof a === "string") - (typeof b === "string");
  if (kinds) return kinds;
  const order = typeof a === "string" ? a.localeCompare(b, undefined, { numeric: true }) : a - b;
  return up ? order : -order;
}

// A link to an entry opens it; printing opens the folded tables.
function reveal() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target) {
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    const fold = target.querySelector(":scope > .fold");
    if (fold) fold.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", reveal);
reveal();
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll(".fold, #failed details")) folded.open = true;
});
