
"use strict";
// Sort a table by a column when its heading is pressed.
function key(row, column) {
  const cell = row.cells[column];
  if (!cell) return "";
  const text = cell.textContent.trim().replace(/[\u202f,]/g, "").replace(/−/g, "-");
  if (text === "" || text === "–") return null;
  const number = parseFloat(text);
  return Number.isNaN(number) ? text : number;
}
function compare(a, b) {
  if (typeof a === typeof b) return typeof a === "number" ? a - b : a.localeCompare(b);
  return typeof a === "number" ? -1 : 1;
}
function sort(heading, column) {
  const falling = heading.getAttribute("aria-sort") === "descending";
  const rising = heading.getAttribute("aria-sort") === "ascending";
  const first = heading.classList.contains("n") ? "descending" : "ascending";
  const order = falling ? "ascending" : rising ? "descending" : first;
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", order);
  const body = heading.closest("table").tBodies[0];
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...body.rows].map(row => [key(row, column), row]);
  rows.sort(([a], [b]) => a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b));
  for (const [, row] of rows) body.append(row);
}
for (const table of document.querySelectorAll("table:not(.matrix)")) {
  if (!table.tHead || !table.tBodies[0] || table.tBodies[0].rows.length < 3) continue;
  if (table.querySelector("tbody [colspan]")) continue;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (heading.textContent.trim() === "") return;
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sort(heading, column));
  });
}
// Show the values of the point that is nearest to the pointer.
const note = document.createElement("div");
note.className = "note";
note.hidden = true;
document.body.append(note);
let ring = null;
function hide() {
  note.hidden = true;
  if (ring) ring.remove();
}
function show(chart, points, event) {
  const box = chart.getBoundingClientRect();
  const scale = box.width / chart.viewBox.baseVal.width;
  const at = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
  let best = null, least = 40 ** 2;
  for (const point of points) {
    const distance = (point[0] - at[0]) ** 2 + (point[1] - at[1]) ** 2;
    if (distance < least) [best, least] = [point, distance];
  }
  if (!best) return hide();
  ring ??= document.createElementNS(chart.namespaceURI, "circle");
  ring.setAttribute("class", "ring");
  ring.setAttribute("r", 5);
  ring.setAttribute("cx", best[0]);
  ring.setAttribute("cy", best[1]);
  chart.append(ring);
  note.textContent = (best[4] ? best[4] + "\n" : "") + `${chart.dataset.x}: ${best[2]}\n${chart.dataset.y}: ${best[3]}`;
  note.hidden = false;
  const left = box.left + best[0] * scale + 12, top = box.top + best[1] * scale - note.offsetHeight - 8;
  note.style.left = Math.max(4, Math.min(left, document.documentElement.clientWidth - note.offsetWidth - 4)) + "px";
  note.style.top = Math.max(4, top) + "px";
}
for (const chart of document.querySelectorAll("svg[data-hover]")) {
  const points = chart.dataset.hover.split("\n").map(line => line.split("\t"));
  chart.addEventListener("pointermove", event => show(chart, points, event));
  chart.addEventListener("pointerdown", event => show(chart, points, event));
  chart.addEventListener("pointerleave", hide);
}
document.addEventListener("scroll", hide, {passive: true});
