// Makes charts comfortable: what is under the pointer is told beside it, a stretch that is drawn over or chosen with the keyboard is
// shown larger, times are those of the reader, and the many bars of a row are one stop of the Tab key. Charts can be read without all
// that: each has its numbers in a table, and a form for any stretch of time.
import { hour } from "./times.js";
import { locale } from "./words.js";

const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;

let drag = null; // the plot, and the first and last bucket of what is being chosen

document.addEventListener("pointermove", (event) => {
  const hit = hitOf(event.target);
  if (!hit) return drag ? undefined : hide();
  if (drag?.plot === hit.closest(".plot")) choose(hit);
  tell(hit);
});
document.addEventListener("pointerdown", (event) => {
  const hit = event.button === 0 && hitOf(event.target);
  const base = hit && hit.closest("[data-chart]").dataset.base;
  cancel();
  if (base) begin(hit.closest(".plot"), base, hit);
});
document.addEventListener("pointerup", zoom);
document.addEventListener("click", (event) => open(hitOf(event.target)));
document.addEventListener("pointercancel", cancel);
document.addEventListener("keydown", (event) => {
  const row = event.target.closest?.("[data-rove]");
  if (row) return rove(row, event);
  if (event.target.matches?.(".plot")) walk(event.target, event);
});
document.addEventListener("focusout", (event) => event.target.matches?.(".plot") && (drag?.plot === event.target && cancel(), hide()));

enhance();
new MutationObserver(enhance).observe(document.getElementById("main"), { childList: true });

// enhance prepares charts that have come with the page or with a newer rendering of it.
function enhance() {
  for (const plot of document.querySelectorAll(".plot")) {
    plot.tabIndex = 0;
    for (const hit of plot.querySelectorAll(".hits rect")) {
      const title = hit.querySelector("title");
      if (!title) continue;
      hit.dataset.tip = title.textContent; // the browser would show the title as well
      title.remove();
    }
  }
  for (const row of document.querySelectorAll("[data-rove]")) {
    const stops = [...row.querySelectorAll("a")];
    const first = row.querySelector("a[aria-current]") ?? stops.at(-1);
    for (const stop of stops) stop.tabIndex = stop === first ? 0 : -1;
  }
  const clock = new Intl.DateTimeFormat(locale, { hour: "numeric" }); // short: five of them fit a phone
  for (const text of document.querySelectorAll(".chart-x text[data-clock]")) {
    text.textContent = clock.format(new Date(text.dataset.clock));
    const zone = text.closest(".chart-grid").querySelector(".zone");
    if (zone) zone.textContent = "";
  }
}

function hitOf(target) {
  return target instanceof Element ? target.closest(".plot .hits rect") : null;
}

// tell shows what is known of a bucket beside it.
function tell(hit) {
  const chart = hit.closest("[data-chart]");
  if (tip.parentNode !== chart) chart.append(tip);
  tip.textContent = words(hit, chart);
  tip.hidden = false;
  for (const on of chart.querySelectorAll(".hits rect.on")) if (on !== hit) on.classList.remove("on");
  hit.classList.add("on");
  const at = hit.getBoundingClientRect(), around = chart.getBoundingClientRect();
  const right = at.right - around.left + 8;
  const fits = right + tip.offsetWidth <= around.width;
  tip.style.left = `${fits ? right : Math.max(0, at.left - around.left - tip.offsetWidth - 8)}px`;
}

// words are those of a bucket, with hours in the reader's zone. Days are days in UTC.
function words(hit, chart) {
  const [, ...rest] = hit.dataset.tip.split("\n");
  if (chart.dataset.step === "86400") return hit.dataset.tip;
  const seconds = chart.dataset.step ? undefined : "2-digit"; // of a single check
  const form = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour, minute: "2-digit", second: seconds });
  return [form.format(new Date(hit.dataset.at)), ...rest].join("\n");
}

// open goes to what a bar stands for, where that is one check.
function open(hit) {
  if (hit?.dataset.leads) location.assign(hit.dataset.leads);
}

function hide() {
  tip.hidden = true;
  for (const on of document.querySelectorAll(".hits rect.on")) on.classList.remove("on");
}

// begin starts to choose a stretch. The page is not replaced before that is over.
function begin(plot, base, hit) {
  drag = { plot, base, first: hit, last: hit };
  plot.dataset.choosing = "";
}

function choose(hit) {
  drag.last = hit;
  for (const one of bucketsOf(drag.plot)) one.classList.toggle("chosen", drag.first !== drag.last && between(one));
}

function between(one) {
  const [from, to] = [drag.first.dataset.at, drag.last.dataset.at].sort();
  return one.dataset.at >= from && one.dataset.at <= to;
}

function bucketsOf(plot) {
  return [...plot.querySelectorAll(".hits rect")];
}

// zoom shows what was chosen: two buckets at least, a single one is a click.
function zoom() {
  if (!drag || drag.first === drag.last) return cancel();
  const [from, to] = [drag.first.dataset.at, drag.last.dataset.at].sort();
  const step = Number(drag.plot.closest("[data-chart]").dataset.step) * 1000;
  const address = new URL(drag.base, location.href);
  address.searchParams.delete("range");
  address.searchParams.set("from", second(new Date(from)));
  address.searchParams.set("to", second(new Date(Date.parse(to) + step)));
  cancel();
  location.assign(address);
}

function second(date) {
  return date.toISOString().replace(/\.\d+Z$/, "Z");
}

function cancel() {
  if (!drag) return;
  for (const one of bucketsOf(drag.plot)) one.classList.remove("chosen");
  delete drag.plot.dataset.choosing;
  drag = null;
  document.dispatchEvent(new Event("chosen"));
}

// walk goes from bucket to bucket with the arrow keys; with Shift it chooses, and Enter shows what was chosen.
function walk(plot, event) {
  const all = bucketsOf(plot);
  const at = all.findIndex((one) => one.classList.contains("on"));
  const to = { ArrowLeft: at < 0 ? all.length - 1 : at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
  if (event.key === "Enter") return drag ? zoom() : open(all[at]);
  if (event.key === "Escape") return cancel(), hide();
  if (to === undefined || !all[to]) return;
  event.preventDefault();
  const base = plot.closest("[data-chart]").dataset.base;
  if (!event.shiftKey) cancel();
  else if (!drag && base) begin(plot, base, all[Math.max(0, at)]);
  if (drag) choose(all[to]);
  tell(all[to]);
  const announce = document.getElementById("announce");
  if (announce) announce.textContent = tip.textContent;
}

// rove moves the focus within a row of bars.
function rove(row, event) {
  const stops = [...row.querySelectorAll("a")];
  const at = stops.indexOf(event.target);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: stops.length - 1 }[event.key];
  if (at < 0 || !stops[to]) return;
  event.preventDefault();
  stops[at].tabIndex = -1;
  stops[to].tabIndex = 0;
  stops[to].focus();
}
