// Writes times in the reader's own zone and keeps "ago" true while the page stands open. The exact moment in UTC stays
// within reach in the title.
import { locale, say } from "./words.js";

const today = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const thisYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const anyYear = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

export function localise(root) {
  const now = new Date();
  for (const el of root.querySelectorAll("time[data-at], time[data-ago]")) {
    const at = new Date(el.dateTime);
    if (Number.isNaN(at.getTime()) || at.getUTCFullYear() < 2000) continue;
    if (!el.title) el.title = el.textContent;
    const text = "ago" in el.dataset ? ago(now - at) : local(at, now);
    if (el.textContent !== text) el.textContent = text;
  }
  for (const el of root.querySelectorAll("[data-hour]")) sayHour(el);
}

// sayHour says when an hour began by the reader's clock, beside what it is in UTC: in an element of its own, or wherever it stands in a bar.
function sayHour(el) {
  const at = new Date(el.dataset.hour), said = el.dataset.said;
  el.removeAttribute("data-hour");
  if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) return;
  if (!said) {
    el.title = el.textContent;
    el.textContent = thisYear.format(at);
    return;
  }
  const both = `${thisYear.format(at)} (${said})`;
  for (const one of [el, ...el.querySelectorAll("[title]")]) if (one.title) one.title = one.title.replace(said, () => both);
  for (const one of el.querySelectorAll(".unseen")) one.textContent = one.textContent.replace(said, () => both);
}

function local(at, now) {
  if (at.toDateString() === now.toDateString()) return say("today, %s", today.format(at));
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
