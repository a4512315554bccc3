// Writes times in the reader's own zone and keeps "ago" true while the page stands open. The exact moment in UTC stays
// within reach in the title.

const today = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const thisYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const anyYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });

export function localise(root) {
  const now = new Date();
  for (const el of root.querySelectorAll("time[data-at], time[data-ago]")) {
    const at = new Date(el.dateTime);
    if (Number.isNaN(at.getTime()) || at.getUTCFullYear() < 2000) continue;
    if (!el.title) el.title = el.textContent;
    const text = "ago" in el.dataset ? ago(now - at) : local(at, now);
    if (el.textContent !== text) el.textContent = text;
  }
}

function local(at, now) {
  if (at.toDateString() === now.toDateString()) return `today, ${today.format(at)}`;
  return (at.getFullYear() === now.getFullYear() ? thisYear : anyYear).format(at);
}

// The same words as the server's.
function ago(ms) {
  if (ms < 1000) return "just now";
  return `${lasting(Math.round(ms / 1000))} ago`;
}

function lasting(s) {
  const days = Math.floor(s / 86400), hours = Math.floor(s / 3600) % 24, minutes = Math.floor(s / 60) % 60;
  const join = (large, n, unit) => (n === 0 ? large : `${large} ${n} ${unit}`);
  if (s < 60) return `${s} s`;
  if (s < 600) return join(`${minutes} min`, s % 60, "s");
  if (s < 3600) return `${minutes} min`;
  if (days === 0) return join(`${hours} h`, minutes, "min");
  if (days < 7) return join(`${days} ${days === 1 ? "day" : "days"}`, hours, "h");
  return `${days} days`;
}
