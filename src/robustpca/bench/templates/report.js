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
// Paper shows what is folded.
window.addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
});
