// The what-if panel: items are moved in the confusion matrix, and every metric follows. It stands
// after page.js, whose functions it uses.

// --- metrics of a confusion matrix --------------------------------------------------------------
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

// --- the panel ----------------------------------------------------------------------------------

function formatNumber(value, signed = false) {
  if (isNaN(value)) return "undefined";
  const text = value.toFixed(3).replace(/^-(0\.000)$/, "$1");
  return signed && Number(text) > 0 ? `+${text}` : text;
}

const formatWeight = (value) => (Number.isInteger(value) ? String(value) : value.toFixed(3));

const IN_LEVELS = new Set(["mae", "macro_mae", "bias"]); // which grow with the positions of levels

// A change that rounding may make is none: `span` is how far a value can go.
function judgeChange(better, before, after, span) {
  const size = { higher: (x) => x, lower: (x) => -x, "near 0": (x) => -Math.abs(x) }[better];
  const gain = size(after) - size(before);
  if (isNaN(gain)) return "";
  return Math.abs(gain) <= 5e-13 * span ? "same" : gain > 0 ? "better" : "worse";
}

function writeNumber(cell, value, text) {
  cell.replaceChildren(create("data", { value: isNaN(value) ? "" : String(value) }, text));
}

function prepareWhatIf() {
  const section = find("#what-if");
  const table = find("#cells");
  const positions = findAll("[data-position]", table).map((head) => Number(head.dataset.position));
  const span = positions.at(-1) - positions[0];
  const columns = [...table.tHead.rows[0].cells].slice(1).map((head) => head.textContent);
  const buttons = [...table.tBodies[0].rows].map((row) => findAll("button", row));
  const original = buttons.map((row) => row.map((button) => Number(button.value)));
  const before = computeAll(original, positions);
  const past = []; // matrices, for undo
  let weights = original;
  let source = null; // the cell from which items are taken

  const countItems = (weight) => `${formatWeight(weight)} ${weight === 1 ? "item" : "items"}`;
  const nameCell = ([i, j]) => `gold ${columns[i]}, predicted ${columns[j]}`;
  const say = (text) => { find("#moved").textContent = text; };

  function writeCells() {
    buttons.forEach((row, i) => row.forEach((button, j) => {
      button.value = String(weights[i][j]);
      button.textContent = formatWeight(weights[i][j]);
      button.setAttribute("aria-label", `${nameCell([i, j])}: ${countItems(weights[i][j])}`);
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
      row.append(create("td", {}, judgeChange(better, before[name], after[name], IN_LEVELS.has(name) ? span : 1)));
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
      say(`${countItems(moved)} from ${nameCell(from)} to ${nameCell(cell)}.`);
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
    say(`${countItems(moved)} from predicted ${columns[level]} to ${columns[neighbour]}.`);
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
  find('.top-bar a[href="#what-if"]').parentElement.hidden = false;
}

prepareWhatIf();
