"use strict";
// Tables are sorted by their headers: up, down, and back to the order of the page.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const original = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.v ?? cell.textContent.trim();
    return { text, number: Number(text), isEmpty: ["", "-", "nan"].includes(text) };
  };
  const compare = (a, b) =>
    Number.isNaN(a.number - b.number)
      ? a.text.localeCompare(b.text, "en", { numeric: true })
      : a.number - b.number;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort by this column";
    button.append(...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")];
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      const sign = next === "descending" ? -1 : 1;
      const order = next === "none" ? original : original
        .map((row) => ({ row, value: valueOf(row, column) }))
        // What has no value comes last in both directions.
        .sort((a, b) => a.value.isEmpty - b.value.isEmpty || sign * compare(a.value, b.value))
        .map((item) => item.row);
      body.append(...order);
    });
  });
}
// A link to a table that is folded unfolds it.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const fold = target?.querySelector(":scope > details");
  if (fold) { fold.open = true; target.scrollIntoView(); }
}
addEventListener("hashchange", unfold);
unfold();
// The contents of a narrow page are folded.
if (innerWidth < 1150) document.querySelector("nav details").open = false;
// Pictures and charts are enlarged by a click, and numbers are shown at once.
const zoom = document.getElementById("zoom"), tip = document.getElementById("tip");
document.addEventListener("click", (event) => {
  const shown = event.target.closest("figure img, figure svg.chart");
  if (shown) { zoom.replaceChildren(shown.cloneNode(true)); zoom.showModal(); }
  else if (event.target.closest("dialog")) zoom.close();
});
document.addEventListener("pointerover", (event) => {
  const text = event.target.closest?.(".marker")?.querySelector("title")?.textContent;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${event.clientY + 14}px`;
});
// Paper shows what is folded.
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
