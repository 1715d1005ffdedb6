"use strict";
(() => {
  document.documentElement.classList.add("js");
  const signed = (value, decimals) =>
    (Number(value.toFixed(decimals)) < 0 ? "−" : "+") + Math.abs(value).toFixed(decimals);

  // Table of weights: sorting by the buttons in its head, and a search.
  const table = document.getElementById("weights");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const headers = Array.from(table.tHead.rows[0].cells);
  const numberIn = (text) => {
    const value = parseFloat(text.replace("−", "-"));
    return Number.isNaN(value) ? -Infinity : value;
  };
  const sortBy = (column) => {
    const header = headers[column];
    const isText = header.dataset.kind === "text";
    const first = isText ? "ascending" : "descending";
    const other = isText ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? other : first;
    headers.forEach((each) => each.setAttribute("aria-sort", each === header ? order : "none"));
    const sign = order === "ascending" ? 1 : -1;
    const keys = new Map(rows.map((row) => {
      const text = row.cells[column].textContent;
      return [row, isText ? text : numberIn(text)];
    }));
    const compare = isText
      ? (a, b) => keys.get(a).localeCompare(keys.get(b), undefined, { numeric: true })
      : (a, b) => keys.get(a) - keys.get(b);
    rows.sort((a, b) => sign * compare(a, b));
    body.append(...rows);
  };
  headers.forEach((header, column) => header.querySelector("button").addEventListener("click", () => sortBy(column)));

  const search = document.getElementById("search");
  const found = document.getElementById("found");
  const names = new Map(rows.map((row) => [row, Array.from(row.cells)
    .filter((cell, column) => headers[column].dataset.kind === "text")
    .map((cell) => cell.textContent.toLowerCase()).join(" ")]));
  search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row) => { row.hidden = !words.every((word) => names.get(row).includes(word)); });
    const count = rows.filter((row) => !row.hidden).length;
    found.textContent = words.length ? `${count} of ${rows.length} rows` : `${rows.length} rows`;
  });

  // Explanation of one sample: the rows stay, bars and numbers change.
  const data = JSON.parse(document.getElementById("data").textContent);
  const sample = document.getElementById("sample");
  const output = document.getElementById("output");
  const said = document.getElementById("said");
  const lines = Array.from(document.getElementById("explanation").rows);
  const show = () => {
    const chosen = Number(sample.value);
    const k = output ? Number(output.value) : 0;
    const scale = data.scales[k];
    lines.forEach((line, m) => {
      const value = data.values[chosen][k][m];
      const size = Math.abs(value);
      const length = size > 0 && size <= scale * (1 + 1e-3) ? (50 * size) / scale : 0;
      const bar = line.querySelector("rect");
      bar.setAttribute("class", value < 0 ? "negative" : "positive");
      bar.setAttribute("x", `${value < 0 ? 50 - length : 50}%`);
      bar.setAttribute("width", `${length}%`);
      line.querySelector(".numbers").textContent = signed(value, data.decimals[k]);
    });
    const name = document.createElement("b");
    name.textContent = data.names[chosen];
    said.replaceChildren(name, `: ${data.said[chosen]}`);
  };
  sample.addEventListener("change", show);
  if (output) output.addEventListener("change", show);
})();
