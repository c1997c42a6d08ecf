// What a report does in a browser: a metric is chosen once and everything follows, marks say more
// about themselves, tables are sorted, filtered and downloaded. All variants are drawn already, those
// that are not shown are compressed; nothing is drawn here, and nothing is fetched.

const find = (selector, root = document) => root.querySelector(selector);
const findAll = (selector, root = document) => [...root.querySelectorAll(selector)];

function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// --- choosing a metric, or what else varies ------------------------------------------------------

const packed = new WeakMap(); // elements as text, by group and by name

async function unpack(script) {
  const bytes = Uint8Array.from(atob(script.textContent), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function addVariant(group, name) {
  const script = find(":scope > script", group);
  if (!packed.has(group)) packed.set(group, unpack(script));
  const text = (await packed.get(group))[name];
  if (text === undefined || listVariants(group).some((x) => x.dataset.variant === name)) return;
  const element = create("div", { "data-variant": name });
  element.innerHTML = text;
  script.before(element);
  prepareContent(element);
}

const listVariants = (group) => [...group.children].filter((x) => x.dataset.variant !== undefined);

async function showVariant(group, name) {
  group.dataset.chosen = name;
  if (!listVariants(group).some((x) => x.dataset.variant === name)) await addVariant(group, name);
  if (group.dataset.chosen !== name) return; // another one was chosen meanwhile
  const variants = listVariants(group);
  for (const element of variants) element.hidden = element.dataset.variant !== name;
  const none = find(":scope > .none", group);
  if (none) none.hidden = variants.some((x) => !x.hidden);
}

function prepareChoosers() {
  if (!window.DecompressionStream) return;
  for (const label of findAll(".chooser")) {
    const select = find("select", label);
    const own = label.closest(".variants");
    const groups = own ? [own] : findAll(`[data-follows="${select.dataset.chooses}"]`);
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

const phone = matchMedia("screen and (max-width: 40rem)");

// Of two drawings, the one that fits the screen is shown; the first is for wide ones.
function showFitting(figure, drawings) {
  const show = () => find(".drawing", figure).replaceChildren(drawings[Number(phone.matches)]);
  phone.addEventListener("change", show);
  show();
}

function prepareFigures(root) {
  for (const figure of findAll("figure", root)) {
    const narrow = find("template", figure);
    const wide = find("svg", figure);
    const drawings = narrow ? [wide, narrow.content.firstElementChild] : [wide];
    const button = create("button", { type: "button" }, "Download SVG");
    button.setAttribute("aria-label", `Download SVG: ${find("h3", figure).textContent.slice(0, 99)}`);
    button.addEventListener("click", () => {
      const drawing = writeDrawing(wide);
      download(nameFile(figure.dataset.name, ".svg"), "image/svg+xml", drawing);
    });
    figure.append(create("div", { class: "tools" }, button));
    for (const chart of drawings) {
      labelByTitle(chart, find(".mark", chart) ? "group" : "img");
      rove(chart, ".mark");
    }
    if (narrow) showFitting(figure, drawings);
  }
}

// --- tables -------------------------------------------------------------------------------------

const LEADING_NUMBER = /^[<>]?\s*[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?/i;
const FEWEST_FILTERED = 8; // rows

function readNumber(text) {
  const found = text.match(LEADING_NUMBER);
  return found ? Number(found[0].replace(/[<>,\s]/g, "")) : NaN;
}

function writeField(text) {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
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
    if (!head.textContent) return;
    const button = create("button", { type: "button", class: "sort" }, ...head.childNodes);
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const order = next[head.getAttribute("aria-sort")];
      for (const each of findAll("[aria-sort]", table)) each.setAttribute("aria-sort", "none");
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

function prepareTables(root) {
  for (const box of findAll(".table:not(.plain)", root)) {
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

function prepareContent(root) {
  prepareFigures(root);
  prepareTables(root);
}

prepareContent(document);
prepareChoosers();
prepareTheme();
prepareMarks();
