// What the page does beyond links and forms: search as one types, keys, what is new, copying a command.
// Without it everything still works. Text from memory never becomes a script: fragments come escaped from
// our own server, and the policy below lets nothing else be parsed.

const policy = globalThis.trustedTypes
  ? trustedTypes.createPolicy("ua", { createHTML: (text) => text })
  : { createHTML: (text) => text };

const main = document.querySelector("#main");
const box = document.querySelector("header input[name=q]");

/** Fetch the inside of a page of ours. */
async function fragment(url, signal) {
  const answer = await fetch(url, { headers: { accept: "text/html; fragment" }, signal });
  return await answer.text();
}

// -- search ------------------------------------------------------------------------------------------------

const MEANING = 180;
const AGAIN = 2000;  // a daemon that was not running yet has loaded its model after some seconds
let typing = null;
let later = 0;
let shown = location.pathname + location.search;

function search() {
  const q = box.value.trim();
  typing?.abort();
  clearTimeout(later);
  if (!q) return;
  typing = new AbortController();
  const { signal } = typing;
  let meant = false, tries = 5;
  const show = async (by) => {
    try {
      const text = await fragment(`/search?q=${encodeURIComponent(q)}${by}`, signal);
      if (signal.aborted || (by && meant)) return;  // words that come late replace nothing better
      if (tries < 5 && main.contains(document.activeElement)) return;  // what is being read stays
      meant = !by;
      main.innerHTML = policy.createHTML(text);
      document.title = `${q} · ua-memory`;
      document.querySelector("nav [aria-current]")?.removeAttribute("aria-current");
      ready();
      if (!by && main.querySelector("a.slow") && tries-- > 0) later = setTimeout(() => show(""), AGAIN);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
  const url = `/search?q=${encodeURIComponent(q)}`;
  history[location.pathname === "/search" ? "replaceState" : "pushState"](null, "", url);
  shown = location.pathname + location.search;
  show("&by=words");
  later = setTimeout(() => show(""), MEANING);
}
box.addEventListener("input", search);
// Also sent for a link within the page, as to its content or a line, which is there already.
addEventListener("popstate", () => { if (location.pathname + location.search !== shown) location.reload(); });

// -- keys --------------------------------------------------------------------------------------------------

const GO = { d: "/", s: "/sessions", n: "/names", p: "/pages", b: "/beliefs", c: "/core", h: "/diary", w: "/work" };
const LINKS = { e: "a[href^='vscode:']", f: "a[href^='/forget']", u: "a[href$='?undo=1']" };
let went = 0;

const ITEMS = ".fact > .text, .hit .text, .diary a, .diary summary, tbody a, .belief h2 a";
const items = () => [...main.querySelectorAll(ITEMS)].filter((each) => each.checkVisibility());

function move(by) {
  const all = items();
  const at = all.indexOf(document.activeElement);
  all[Math.min(Math.max(at + by, 0), all.length - 1)]?.focus();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (/INPUT|TEXTAREA/.test(document.activeElement.tagName)) document.activeElement.blur();
    else history.back();
    return;
  }
  if (/INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName)) {
    if (event.key === "ArrowDown" && document.activeElement === box) { event.preventDefault(); move(1); }
    return;
  }
  const key = event.key;
  if (Date.now() - went < 1200 && GO[key]) { location.href = GO[key]; return; }
  went = key === "g" ? Date.now() : 0;
  const row = document.activeElement.closest("li"), why = main.querySelector("input[name=why]");
  if (key === "/") { event.preventDefault(); box.focus(); box.select(); }
  else if (key === "j") move(1);
  else if (key === "k") move(-1);
  else if (key === "?") location.href = "/help";
  else if (key === "r" && !news.hidden) refresh();
  else if (key === "w" && why) { event.preventDefault(); why.focus(); }
  else if (LINKS[key]) (row?.querySelector(LINKS[key]) ?? main.querySelector(LINKS[key]))?.click();
});

// -- forms -------------------------------------------------------------------------------------------------

// A form that was refused is shown at the address where it stands, so that a reload sends nothing.
if (location.pathname.startsWith("/do/")) history.replaceState(null, "", document.querySelector("#news").href);
// A second click sends it no second time; and where nobody listens any more, what was typed is not lost.
addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  if (source.readyState === EventSource.OPEN || form.dataset.reached) return;
  event.preventDefault();
  const reached = await fetch("/static/icon.svg").then((answer) => answer.ok, () => false);
  delete form.dataset.sent;
  if (!reached) { alert("Not connected: nothing was sent, and what you typed is still here. Start the page again: ua-memory web --write"); return; }
  form.dataset.reached = "1";
  form.requestSubmit(event.submitter);
});
addEventListener("pageshow", () => main.querySelectorAll("form").forEach((form) => delete form.dataset.sent));

// -- what is new -------------------------------------------------------------------------------------------

const news = document.querySelector("#news");
const live = document.querySelector("#live");
let fresh = 0;

async function refresh() {
  const typed = [...main.querySelectorAll("input, textarea")].some((each) => each.value !== each.defaultValue);
  if (typed && !confirm("Show what is new? What you have typed here is lost.")) return;
  main.innerHTML = policy.createHTML(await fragment(location.pathname + location.search));
  fresh = 0;
  news.hidden = true;
  document.querySelector("#facts").textContent = main.querySelector(".foot")?.dataset.facts ?? "";
  ready();
}
news.addEventListener("click", (event) => { event.preventDefault(); refresh(); });

const source = new EventSource("/live");
source.addEventListener("ready", () => { live.textContent = "● live"; });
source.addEventListener("revision", () => {
  fresh += 1;
  news.textContent = `${fresh} new · r`;
  news.hidden = false;
});
source.addEventListener("error", () => { live.textContent = "not connected"; });

// -- graphs ------------------------------------------------------------------------------------------------

/** Move a picture by dragging it, and zoom by buttons, or the wheel with Ctrl. */
function movable(figure) {
  const svg = figure.querySelector("svg");
  const { x, y, width, height } = svg.viewBox.baseVal;
  let box = [x, y, width, height];
  let drawn = box;
  let rest = 0;
  let held = null;
  const show = (next) => {
    clearTimeout(rest);
    box = drawn = next;
    svg.setAttribute("viewBox", box.join(" "));
    svg.style.transform = "";
  };
  // To draw hundreds of names anew takes 150 ms without a graphics card: what was drawn is moved, until it rests.
  const glide = (next) => {
    box = next;
    const scale = svg.clientWidth / box[2];
    svg.style.transform = `translate(${(drawn[0] - box[0]) * scale}px, ${(drawn[1] - box[1]) * scale}px) scale(${drawn[2] / box[2]})`;
    clearTimeout(rest);
    rest = setTimeout(() => show(box), 150);
  };
  const zoom = (by, h = 0.5, v = 0.5, move = show) => {
    const side = Math.min(Math.max(box[2] * by, width / 20), width * 2);
    move([box[0] + h * (box[2] - side), box[1] + v * (box[3] - side), side, side]);
  };
  const buttons = figure.querySelectorAll("button");
  [() => zoom(0.8), () => zoom(1.25), () => show([x, y, width, height])].forEach((act, n) => { buttons[n].onclick = act; });
  figure.querySelector(".zoom").hidden = false;
  svg.onwheel = (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const place = svg.getBoundingClientRect();
    const [h, v] = [(event.clientX - place.x) / place.width, (event.clientY - place.y) / place.height];
    const part = drawn[2] / box[2];
    zoom(event.deltaY > 0 ? 1.1 : 0.9, h * part + (drawn[0] - box[0]) / box[2], v * part + (drawn[1] - box[1]) / box[3], glide);
  };
  svg.onpointerdown = (event) => { held = { x: event.clientX, y: event.clientY, box, moved: false }; };
  svg.onpointermove = (event) => {
    if (!held || !event.buttons) { held = null; return; }
    const [dx, dy] = [event.clientX - held.x, event.clientY - held.y];
    if (!held.moved && Math.hypot(dx, dy) < 4) return;
    if (!held.moved) svg.setPointerCapture(event.pointerId);
    held.moved = true;
    const scale = box[2] / svg.clientWidth;
    glide([held.box[0] - dx * scale, held.box[1] - dy * scale, box[2], box[3]]);
  };
  svg.addEventListener("click", (event) => { if (held?.moved) event.preventDefault(); held = null; }, true);
  svg.ondragstart = () => false;
}

// -- after each page ---------------------------------------------------------------------------------------

function ready() {
  main.querySelectorAll(".graph").forEach(movable);
  const copy = main.querySelector("button.copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.onclick = async () => {
      await navigator.clipboard.writeText(copy.previousElementSibling.textContent.slice(2));
      copy.textContent = "copied";
    };
  }
}
ready();
