// What a report does in a browser: a metric is chosen once and everything follows, marks say more
// about themselves, tables are sorted, filtered and downloaded, and items are moved to see what if.
// All variants are drawn already; nothing is drawn here, and nothing is fetched.

const find = (selector, root = document) => root.querySelector(selector);
const findAll = (selector, root = document) => [...root.querySelectorAll(selector)];

function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// --- choosing a metric --------------------------------------------------------------------------

function showVariant(group, name) {
  let found = false;
  for (const element of group.children) {
    if (element.dataset.variant === undefined) continue;
    element.hidden = element.dataset.variant !== name;
    found ||= !element.hidden;
  }
  const none = find(":scope > .none", group);
  if (none) none.hidden = found;
}

function prepareChoosers() {
  for (const label of findAll(".chooser")) {
    const select = find("select", label);
    const own = label.closest(".variants");
    const groups = own ? [own] : findAll(".variants[data-follows=metric]");
    const choose = () => groups.forEach((group) => showVariant(group, select.value));
    select.addEventListener("change", choose);
    label.hidden = false;
    choose(); // a browser may remember a choice when a page is opened again
  }
}

// --- light and dark -----------------------------------------------------------------------------

function prepareTheme() {
  const button = find("#theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const write = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    write();
  });
  system.addEventListener("change", write);
  button.hidden = false;
  write();
}

// --- details of marks ---------------------------------------------------------------------------

const tip = create("div", { class: "tip", hidden: "", "aria-hidden": "true" });
let shown = null; // the mark that the tip belongs to

// A title would be shown a second time by the browser, so that it becomes a label.
function labelByTitle(element, role) {
  const title = find(":scope > title", element);
  if (title) {
    element.setAttribute("aria-label", title.textContent);
    element.setAttribute("role", role);
    title.remove();
  }
  return element.getAttribute("aria-label");
}

function showTip(mark) {
  hideTip();
  shown = mark;
  tip.textContent = labelByTitle(mark, "img");
  tip.hidden = false;
  mark.classList.add("shown");
  const box = mark.getBoundingClientRect();
  const left = Math.min(box.left, innerWidth - tip.offsetWidth - 8);
  const above = box.top - tip.offsetHeight - 6;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${above > 0 ? above : box.bottom + 6}px`;
}

function hideTip() {
  shown?.classList.remove("shown");
  shown = null;
  tip.hidden = true;
}

const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function findCentre(element) {
  const box = element.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}

// The nearest element in a direction; what lies aside counts as farther away.
function findNeighbour(element, others, [stepX, stepY]) {
  const [x, y] = findCentre(element);
  let nearest = null, least = Infinity;
  for (const other of others) {
    const [otherX, otherY] = findCentre(other);
    const along = (otherX - x) * stepX + (otherY - y) * stepY;
    const aside = Math.abs((otherX - x) * stepY) + Math.abs((otherY - y) * stepX);
    if (along > 1 && along + 4 * aside < least) [nearest, least] = [other, along + 4 * aside];
  }
  return nearest;
}

// One element of a group is in the order of focus, and arrows lead from it to the others.
function rove(group, selector) {
  const first = find(selector, group);
  if (!first) return;
  let current = first;
  const take = (element) => {
    current.setAttribute("tabindex", "-1");
    current = element;
    current.setAttribute("tabindex", "0");
  };
  take(first);
  group.addEventListener("focusin", (event) => {
    const element = event.target.closest(selector);
    if (element) take(element);
  });
  group.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const all = findAll(selector, group);
    const ends = { Home: all[0], End: all[all.length - 1] };
    const step = STEPS[event.key];
    const next = step ? findNeighbour(current, all, step) : ends[event.key];
    if (step || next) event.preventDefault();
    if (!next) return;
    next.setAttribute("tabindex", "-1");
    next.focus();
  });
}

function prepareMarks() {
  document.body.append(tip);
  const showMark = (event) => {
    const mark = event.target.closest?.(".mark");
    if (mark) showTip(mark);
    else hideTip();
  };
  document.addEventListener("pointerover", showMark);
  document.addEventListener("focusin", showMark);
  document.addEventListener("focusout", hideTip);
  document.addEventListener("scroll", hideTip, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  for (const chart of findAll("svg.ordinate-chart")) {
    labelByTitle(chart, find(".mark", chart) ? "group" : "img");
    rove(chart, ".mark");
  }
}

// --- downloads ----------------------------------------------------------------------------------

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  create("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

function nameFile(text, suffix) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? ["ordinate"];
  return words.join("-").slice(0, 60) + suffix;
}

// A drawing with its style sheet, and with titles where labels have taken their place.
function writeDrawing(chart) {
  const copy = chart.cloneNode(true);
  const namespace = "http://www.w3.org/2000/svg";
  for (const element of [copy, ...findAll("[aria-label]", copy)]) {
    const title = document.createElementNS(namespace, "title");
    title.textContent = element.getAttribute("aria-label");
    element.prepend(title);
    for (const name of ["aria-label", "role", "tabindex"]) element.removeAttribute(name);
    element.classList.remove("shown");
  }
  copy.setAttribute("role", "img");
  const style = document.createElementNS(namespace, "style");
  style.textContent = find("#chart-style").textContent;
  copy.prepend(style);
  return new XMLSerializer().serializeToString(copy);
}

function prepareFigures() {
  for (const figure of findAll("figure")) {
    const button = create("button", { type: "button" }, "Download SVG");
    button.setAttribute("aria-label", `Download SVG: ${find("h3", figure).textContent.slice(0, 99)}`);
    button.addEventListener("click", () => {
      const drawing = writeDrawing(find("svg", figure));
      download(nameFile(figure.dataset.name, ".svg"), "image/svg+xml", drawing);
    });
    figure.append(create("div", { class: "tools" }, button));
  }
}

// --- tables -------------------------------------------------------------------------------------

const LEADING_NUMBER = /^[<>]?\s*[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?/i;
const PLAIN_NUMBER = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
const FEWEST_FILTERED = 8; // rows

function readNumber(text) {
  const found = text.match(LEADING_NUMBER);
  return found ? Number(found[0].replace(/[<>,\s]/g, "")) : NaN;
}

// What a spreadsheet would take for a formula is kept a text.
function writeField(text) {
  const formula = /^[=+\-@\t\r]/.test(text) && !PLAIN_NUMBER.test(text);
  const field = formula ? `'${text}` : text;
  return /[",\r\n]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}

function writeTable(table) {
  const rows = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
  return rows.map((row) => `${row.map(writeField).join(",")}\n`).join("");
}

// Numbers by their size where a column has any, other texts by their letters, empty cells last.
function compareCells(first, second, sign) {
  const [a, b] = [readNumber(first), readNumber(second)];
  const missing = (text) => text === "" || text === "undefined" || text === "n/a";
  if (missing(first) || missing(second)) return missing(first) - missing(second);
  if (!isNaN(a) && !isNaN(b) && a !== b) return sign * (a - b);
  return sign * first.localeCompare(second, undefined, { numeric: true });
}

function sortRows(table, column, order, original) {
  const read = (row) => row.cells[column].textContent.trim();
  const sign = order === "descending" ? -1 : 1;
  const rows = [...original];
  if (order !== "none") rows.sort((a, b) => compareCells(read(a), read(b), sign));
  table.tBodies[0].append(...rows);
}

function prepareSorting(table) {
  const heads = [...table.tHead.rows[0].cells];
  const original = [...table.tBodies[0].rows];
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  heads.forEach((head, column) => {
    const button = create("button", { type: "button", class: "sort" }, ...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = next[head.getAttribute("aria-sort")];
      heads.forEach((each) => each.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", order);
      sortRows(table, column, order, original);
    });
  });
}

function makeFilter(table, title) {
  const rows = [...table.tBodies[0].rows];
  const input = create("input", { type: "search", placeholder: "Filter rows" });
  input.setAttribute("aria-label", `Filter rows of ${title}`);
  const count = create("span", { role: "status" });
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    const left = rows.filter((row) => !row.hidden).length;
    count.textContent = wanted ? `${left} of ${rows.length} rows` : "";
  });
  return [input, count];
}

function prepareTables() {
  for (const box of findAll(".table:not(.plain)")) {
    const table = find("table", box);
    const title = (table.caption?.textContent ?? "the table").slice(0, 99);
    const button = create("button", { type: "button" }, "Download CSV");
    button.setAttribute("aria-label", `Download CSV: ${title}`);
    button.addEventListener("click", () => {
      download(nameFile(title, ".csv"), "text/csv", writeTable(table));
    });
    const many = table.tBodies[0].rows.length >= FEWEST_FILTERED;
    prepareSorting(table);
    box.after(create("div", { class: "tools" }, button, ...(many ? makeFilter(table, title) : [])));
  }
}

// --- what if: metrics of a confusion matrix -----------------------------------------------------
// Rows are gold, columns predicted, and what is beyond the last level is unanswered.

const sum = (numbers) => numbers.reduce((total, x) => total + x, 0);
const divide = (a, b) => (b === 0 ? NaN : a / b);

function summarize(weights, positions) {
  const size = positions.length;
  const gold = weights.map(sum);
  const total = sum(gold);
  const levels = [...positions.keys()];
  const cells = weights.map((row) => row.slice(0, size).map((x) => x / total));
  return {
    size, levels, cells, positions,
    gold: gold.map((x) => x / total),
    predicted: levels.map((j) => sum(weights.map((row) => row[j])) / total),
    unanswered: weights.map((row) => (row.length > size ? row[size] / total : 0)),
  };
}

const sumCells = (m, value) => sum(m.levels.map((i) => sum(m.levels.map((j) => value(i, j)))));
const hasUnanswered = (m) => m.unanswered.some((x) => x > 0);
const measureGap = (m, i, j) => Math.abs(m.positions[i] - m.positions[j]);
const listUsed = (m) => m.levels.filter((i) => m.gold[i] > 0);
const computeRecall = (m, i) => m.cells[i][i] / m.gold[i];

// An item without a prediction costs as much as the worst prediction.
function computeRowCost(m, i) {
  const worst = Math.max(...m.levels.map((j) => measureGap(m, i, j)));
  return sum(m.levels.map((j) => m.cells[i][j] * measureGap(m, i, j))) + m.unanswered[i] * worst;
}

// Two levels are close if few gold items lie between them; the predicted level counts by half.
function computeCloseness(m) {
  const proximity = (i, j) => {
    const between = m.gold.slice(Math.min(i, j), Math.max(i, j) + 1);
    const share = Math.min(sum(between) - m.gold[j] / 2, 1);
    return share > 0 ? -Math.log2(share) : 0;
  };
  const best = sum(m.levels.map((i) => m.gold[i] * proximity(i, i)));
  return divide(sumCells(m, (i, j) => m.cells[i][j] && m.cells[i][j] * proximity(i, j)), best);
}

function computeKappa(m, power) {
  if (hasUnanswered(m)) return NaN;
  const cost = (i, j) => measureGap(m, i, j) ** power;
  const observed = sumCells(m, (i, j) => m.cells[i][j] * cost(i, j));
  return 1 - divide(observed, sumCells(m, (i, j) => m.gold[i] * m.predicted[j] * cost(i, j)));
}

function computeTauB(m) {
  if (hasUnanswered(m)) return NaN;
  const order = (i, j, k, l) => Math.sign(k - i) * Math.sign(l - j);
  const inOrder = sumCells(m, (i, j) => m.cells[i][j] &&
    m.cells[i][j] * sumCells(m, (k, l) => (k > i ? m.cells[k][l] * order(i, j, k, l) : 0)));
  const untied = (side) => sumCells(m, (i, j) => (j > i ? side[i] * side[j] : 0));
  const value = divide(inOrder, Math.sqrt(untied(m.gold)) * Math.sqrt(untied(m.predicted)));
  return Math.max(-1, Math.min(1, value));
}

function computeMacroF1(m) {
  const occurring = m.levels.filter((i) => m.gold[i] > 0 || m.predicted[i] > 0);
  const scores = occurring.map((i) => (2 * m.cells[i][i]) / (m.gold[i] + m.predicted[i]));
  return divide(sum(scores), occurring.length);
}

// Unanswered items count as the level that is farthest from gold; two ends that are equal cancel.
function computeBias(m) {
  const [low, high] = [m.positions[0], m.positions[m.size - 1]];
  const farthest = m.levels.map((i) => {
    const [down, up] = [m.positions[i] - low, high - m.positions[i]];
    return down > up ? -down : up > down ? up : 0;
  });
  const shift = sumCells(m, (i, j) => m.cells[i][j] * (m.positions[j] - m.positions[i]));
  return shift + sum(m.levels.map((i) => m.unanswered[i] * farthest[i]));
}

const METRICS = {
  cem_ord: ["higher", computeCloseness],
  quadratic_kappa: ["higher", (m) => computeKappa(m, 2)],
  linear_kappa: ["higher", (m) => computeKappa(m, 1)],
  kendall_tau_b: ["higher", computeTauB],
  accuracy: ["higher", (m) => sum(m.levels.map((i) => m.cells[i][i]))],
  accuracy_within: ["higher", (m) => sumCells(m, (i, j) => (Math.abs(i - j) <= 1) * m.cells[i][j])],
  macro_accuracy: ["higher", (m) => sum(listUsed(m).map((i) => computeRecall(m, i))) / listUsed(m).length],
  min_sensitivity: ["higher", (m) => Math.min(...listUsed(m).map((i) => computeRecall(m, i)))],
  f1_macro: ["higher", computeMacroF1],
  mae: ["lower", (m) => sum(m.levels.map((i) => computeRowCost(m, i)))],
  macro_mae: ["lower", (m) => sum(listUsed(m).map((i) => computeRowCost(m, i) / m.gold[i])) / listUsed(m).length],
  bias: ["near 0", computeBias],
};

function computeAll(weights, positions) {
  const matrix = summarize(weights, positions);
  return Object.fromEntries(Object.entries(METRICS).map(([name, [, compute]]) => [name, compute(matrix)]));
}

// --- what if: the panel -------------------------------------------------------------------------

function formatNumber(value, signed = false) {
  if (isNaN(value)) return "undefined";
  const text = value.toFixed(3).replace(/^-(0\.000)$/, "$1");
  return signed && Number(text) > 0 ? `+${text}` : text;
}

const formatWeight = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(3));

function judgeChange(better, before, after) {
  const size = { higher: (x) => x, lower: (x) => -x, "near 0": (x) => -Math.abs(x) }[better];
  const gain = size(after) - size(before);
  if (isNaN(gain)) return "";
  return Math.abs(gain) < 5e-13 ? "same" : gain > 0 ? "better" : "worse";
}

function writeNumber(cell, value, text) {
  cell.replaceChildren(create("data", { value: isNaN(value) ? "" : String(value) }, text));
}

function prepareWhatIf() {
  const section = find("#what-if");
  if (!section) return;
  const table = find("#cells");
  const positions = findAll("[data-position]", table).map((head) => Number(head.dataset.position));
  const columns = [...table.tHead.rows[0].cells].slice(1).map((head) => head.textContent);
  const buttons = [...table.tBodies[0].rows].map((row) => findAll("button", row));
  const original = buttons.map((row) => row.map((button) => Number(button.value)));
  const before = computeAll(original, positions);
  const past = []; // matrices, for undo
  let weights = original;
  let source = null; // the cell from which items are taken

  const nameCell = ([i, j]) => `gold ${columns[i]}, predicted ${columns[j]}`;
  const say = (text) => { find("#moved").textContent = text; };

  function writeCells() {
    buttons.forEach((row, i) => row.forEach((button, j) => {
      button.value = String(weights[i][j]);
      button.textContent = formatWeight(weights[i][j]);
      button.setAttribute("aria-label", `${nameCell([i, j])}: ${button.textContent} items`);
      button.setAttribute("aria-pressed", String(source?.[0] === i && source?.[1] === j));
      button.classList.toggle("moved", weights[i][j] !== original[i][j]);
      button.classList.toggle("right", i === j);
    }));
    for (const name of ["undo", "reset"]) find(`#${name}`).disabled = past.length === 0;
  }

  function writeMetrics() {
    const after = computeAll(weights, positions);
    find("#what-if-metrics tbody").replaceChildren(...Object.entries(METRICS).map(([name, [better]]) => {
      const row = create("tr", {}, create("th", { scope: "row" }, name));
      const change = after[name] - before[name];
      for (const [value, signed] of [[before[name]], [after[name]], [change, true]]) {
        const cell = row.appendChild(create("td", { class: "n" }));
        writeNumber(cell, value, formatNumber(value, signed));
      }
      row.append(create("td", {}, judgeChange(better, before[name], after[name])));
      return row;
    }));
  }

  function change(next) {
    past.push(weights);
    weights = next;
    writeCells();
    writeMetrics();
  }

  function moveItems(next, [i, j], [k, l], amount) {
    const moved = Math.min(amount, next[i][j]);
    next[i][j] -= moved;
    next[k][l] += moved;
    return moved;
  }

  function chooseCell(cell) {
    const amount = Number(find("#move-cells").amount.value);
    if (source === null || !(amount > 0)) {
      source = cell;
      say(`Taken from ${nameCell(cell)}: choose where to put the items.`);
    } else {
      const [from, next] = [source, weights.map((row) => [...row])];
      const moved = moveItems(next, from, cell, amount);
      source = null;
      say(`${formatWeight(moved)} items from ${nameCell(from)} to ${nameCell(cell)}.`);
      if (moved > 0) change(next);
    }
    writeCells();
  }

  function moveLevel(step) {
    const form = find("#move-level");
    const level = Number(form.level.value);
    const neighbour = level + step;
    if (neighbour < 0 || neighbour >= positions.length) {
      say("There is no such level.");
      return;
    }
    const share = Math.min(Math.max(Number(form.percent.value), 0), 100) / 100;
    const next = weights.map((row) => [...row]);
    const moved = sum(next.map((row, i) => moveItems(next, [i, level], [i, neighbour], row[level] * share)));
    source = null;
    say(`${formatWeight(moved)} items from predicted ${columns[level]} to ${columns[neighbour]}.`);
    change(next);
  }

  buttons.forEach((row, i) => row.forEach((button, j) => {
    button.addEventListener("click", () => chooseCell([i, j]));
  }));
  for (const form of findAll("form", section)) {
    form.addEventListener("submit", (event) => event.preventDefault());
  }
  const form = find("#move-level");
  form.lower.addEventListener("click", () => moveLevel(-1));
  form.higher.addEventListener("click", () => moveLevel(1));
  find("#undo").addEventListener("click", () => {
    weights = past.pop();
    say("The last move is undone.");
    writeCells();
    writeMetrics();
  });
  find("#reset").addEventListener("click", () => {
    past.length = 0;
    weights = original;
    say("As in the report.");
    writeCells();
    writeMetrics();
  });
  writeCells();
  writeMetrics();
  rove(table, "#cells button");
  section.hidden = false;
  find('.bar a[href="#what-if"]').parentElement.hidden = false;
}

prepareChoosers();
prepareTheme();
prepareFigures();
prepareTables();
prepareWhatIf();
prepareMarks();
