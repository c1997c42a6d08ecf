// Two reports side by side: what both say of the same metrics, with differences, and their pages.
// It stands after page.js, whose functions it uses. A choice is part of the address.

const LIST = JSON.parse(find("#reports").textContent);
const choosers = [find("#first"), find("#second")];

const format = (x) => (x === null ? "" : x.toFixed(3).replace(/^-0\.000$/, "0.000"));

function formatValue(value) {
  if (!value) return "";
  const interval = value.low === null || value.high === null
    ? "" : ` (${format(value.low)} to ${format(value.high)})`;
  return value.value === null ? "undefined" : format(value.value) + interval;
}

// Values of one system stand in one row; so do those of two reports of one system each.
function matchValues(first, second) {
  const name = (value) => JSON.stringify([value.metric, value.system]);
  const alone = (values) => new Set(values.map((value) => value.system)).size === 1;
  const key = alone(first) && alone(second) ? (value) => value.metric : name;
  const others = new Map(second.map((value) => [key(value), value]));
  const pairs = first.map((value) => [value, others.get(key(value))]);
  const matched = new Set(pairs.map(([, other]) => other));
  return [...pairs, ...second.filter((value) => !matched.has(value)).map((x) => [undefined, x])];
}

function describeDifference([a, b]) {
  if (!a || !b || a.value === null || b.value === null) return ["", ""];
  const size = Math.max(Math.abs(a.value), Math.abs(b.value)); // in any unit, so not at least 1
  const rounding = 1e-15; // what is left of sums that are 0, as those of a bias may be
  const near = Math.abs(b.value - a.value) <= Math.max(1e-9 * size, rounding); // sums in other orders
  const gap = near ? 0 : b.value - a.value;
  const gains = { maximize: gap, minimize: -gap, zero: near ? 0 : Math.abs(a.value) - Math.abs(b.value) };
  const gain = gains[a.direction];
  const side = gain === undefined ? "" : gain > 0 ? "better" : gain < 0 ? "worse" : "equal";
  return [(gap > 0 ? "+" : "") + format(gap), side];
}

// A text that is scrolled where it is very long.
function writeText(text) {
  return text.length > 160 ? create("span", { class: "long", tabindex: "0" }, text) : text;
}

function writeRow(pair) {
  const [a, b] = pair;
  const systems = [...new Set([a?.system, b?.system].filter((name) => name !== undefined))];
  const row = create("tr", {}, create("th", { scope: "row" }, writeText((a ?? b).metric)));
  row.append(create("td", {}, writeText(systems.join(" / "))));
  for (const text of [formatValue(a), formatValue(b), ...describeDifference(pair)]) {
    row.append(create("td", { class: "n" }, text));
  }
  return row;
}

function nameData(report) {
  return [...new Set(report.values.map((value) => value.data))].join("; ") || "no data that it names";
}

// The two latest reports of the same data; without any, the two latest.
function choosePair() {
  const same = (i) => LIST.findIndex((report, k) => k > i && nameData(report) === nameData(LIST[i]));
  const first = LIST.findIndex((report, i) => report.values.length && same(i) > 0);
  return first < 0 ? [0, Math.min(1, LIST.length - 1)] : [first, same(first)];
}

function compareReports() {
  const [first, second] = choosers.map((select) => LIST[select.value]);
  const rows = matchValues(first.values, second.values).map(writeRow);
  find("#differences tbody").replaceChildren(...rows);
  const data = [first, second].map(nameData);
  find("#data").textContent = data[0] === data[1]
    ? `Both are of ${data[0]}.`
    : `They are of different data, so values may differ for that alone: ${data[0]}, and ${data[1]}.`;
  [first, second].forEach((report, k) => {
    const box = findAll("#side-by-side .page")[k];
    const link = report.page ? create("a", { href: report.page }, report.path) : report.path;
    const title = `${k ? "Second" : "First"} report: ${report.path.slice(0, 99)}`;
    const frame = report.page ? [create("iframe", { src: report.page, title, loading: "lazy" })] : [];
    box.replaceChildren(create("h3", {}, link), ...frame);
  });
  history.replaceState(null, "", `#${choosers.map((select) => LIST[select.value].id).join(",")}`);
}

function prepareSideBySide() {
  const known = new Map(LIST.map((report, k) => [report.id, k]));
  const given = location.hash.slice(1).split(",").map((id) => known.get(id));
  const usual = choosePair();
  choosers.forEach((select, k) => {
    select.append(...LIST.map((report, i) => create("option", { value: i }, report.title.slice(0, 120))));
    select.value = given[k] ?? usual[k];
    select.addEventListener("change", compareReports);
  });
  find("#side-by-side").closest("section").hidden = false;
  find('.top-bar a[href="#choose"]').parentElement.hidden = false;
  compareReports();
}

prepareSideBySide();
