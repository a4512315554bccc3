// Writes times in the reader's own zone and keeps "ago" true while the page stands open. The exact moment in UTC stays
// within reach in the title.
import { locale, say } from "./words.js";

// A clock of twelve hours has no zero before them.
const { hour12 } = new Intl.DateTimeFormat(locale, { hour: "numeric" }).resolvedOptions();
export const hour = hour12 ? "numeric" : "2-digit";

const today = new Intl.DateTimeFormat(locale, { hour, minute: "2-digit", second: "2-digit" });
const clock = new Intl.DateTimeFormat(locale, { hour, minute: "2-digit" });
const thisYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour, minute: "2-digit" });
const anyYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric", hour, minute: "2-digit" });

export function localise(root) {
  const now = new Date();
  for (const el of root.querySelectorAll("time[data-at], time[data-ago]")) {
    const at = new Date(el.dateTime);
    if (Number.isNaN(at.getTime()) || at.getUTCFullYear() < 2000) continue;
    if (!el.title) el.title = el.textContent;
    const text = "ago" in el.dataset ? ago(now - at) : local(at, now, el.dataset.from);
    if (el.textContent !== text) el.textContent = text;
  }
  for (const el of root.querySelectorAll("[data-hour]")) sayHour(el);
}

// sayHour says moments by the reader's clock, beside what they are in UTC: one in an element of its own, or those that stand in the words
// of another, as data-said has them.
function sayHour(el) {
  const moments = el.dataset.hour.split("|").map((one) => new Date(one)), said = el.dataset.said?.split("|");
  el.removeAttribute("data-hour");
  moments.forEach((at, n) => {
    if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) return;
    if (said) return reword(el, said[n], `${thisYear.format(at)} (${said[n]})`);
    el.title = el.textContent;
    el.textContent = thisYear.format(at);
  });
}

// reword puts other words in place of some wherever an element says them: in its text and its bars', in what is read out and hovered.
function reword(el, said, words) {
  const put = (text) => text.replace(said, () => words);
  for (const one of [el, ...el.querySelectorAll("[title]")]) {
    for (const name of ["title", "aria-label"]) if (one.hasAttribute(name)) one.setAttribute(name, put(one.getAttribute(name)));
  }
  for (const one of el.firstElementChild ? el.querySelectorAll(".unseen") : [el]) one.textContent = put(one.textContent);
}

// local writes a moment; where it ends what began at from on the same day, it is the time of day alone.
function local(at, now, from) {
  const isToday = at.toDateString() === now.toDateString();
  if (from && new Date(from).toDateString() === at.toDateString()) return (isToday ? today : clock).format(at);
  if (isToday) return say("today, %s", today.format(at));
  return (at.getFullYear() === now.getFullYear() ? thisYear : anyYear).format(at);
}

// The same words as the server's.
function ago(ms) {
  if (ms < 1000) return say("just now");
  const seconds = Math.round(ms / 1000), days = Math.floor(seconds / 86400);
  if (days >= 7) return say("%d days ago", days);
  return say("%s ago", lasting(seconds));
}

function lasting(s) {
  const days = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24, minutes = Math.floor(s / 60) % 60;
  const both = (large, n, small) => (n === 0 ? large : `${large} ${say(small, n)}`);
  const length = say("%d days as a length", days, days === 1 ? "%d day" : "%d days");
  if (s < 60) return say("%d s", s);
  if (s < 600) return both(say("%d min", minutes), s % 60, "%d s");
  if (s < 3600) return say("%d min", minutes);
  if (days === 0) return both(say("%d h", hours), minutes, "%d min");
  if (days < 7) return both(length, hours, "%d h");
  return length;
}
