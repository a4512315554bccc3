// Keeps a page true while it stands open: asks for the same page again and puts its main part in place of the old one.
// It rests while the page is hidden and while the reader is busy in it (typing, choosing, selecting text), and it keeps
// open what was open and the focus where it was.

import { listen } from "./live.js";

export function keepFresh(main, enhance) {
  if (!main) return;
  const period = Number(main.dataset.refresh) * 1000;
  let asking = false;
  let again = false;
  let held = false;
  let rounds = 0;

  const refresh = async () => {
    again = asking; // what changes while the page is on its way may not be in it
    held = choosing(main);
    if (asking || document.hidden || busy(main)) return;
    asking = true;
    try {
      const fresh = await ask();
      held = choosing(main);
      if (fresh && !busy(main)) {
        replace(main, fresh, enhance);
        listenAnew(main, fresh);
      }
    } catch {
      // The service is away or restarting: the page stays as it is, and the next round tries again.
    } finally {
      asking = false;
      if (again) refresh();
    }
  };

  // While the page hears of changes, asking is only there for what nobody says: that time goes by.
  const round = () => {
    if (!stream.connected() || ++rounds % 4 === 0) refresh();
  };

  // Another page of a list, or another list, is another stream.
  const listenAnew = (main, page) => {
    const fresh = page.querySelector("main")?.dataset.live;
    if (!fresh || watched(fresh) === watched(main.dataset.live)) return;
    main.dataset.live = fresh;
    stream.reopen();
  };

  const stream = listen(main, refresh);
  setInterval(round, period);
  document.addEventListener("visibilitychange", refresh);
  document.addEventListener("chosen", () => held && refresh()); // a chart says so
}

function watched(address) {
  return new URL(address, location.href).searchParams.getAll("e").join();
}

async function ask() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
  if (answer.redirected) {
    location.reload(); // the login has ended
    return null;
  }
  if (!answer.ok) return null;
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function busy(main) {
  if (choosing(main)) return true;
  const at = document.activeElement;
  if (at && main.contains(at) && at.matches("input, select, textarea")) return true;
  if ([...main.querySelectorAll("input, textarea")].some(typed)) return true;
  const selection = getSelection();
  return selection && !selection.isCollapsed && main.contains(selection.anchorNode);
}

// choosing reports whether a stretch of a chart is being chosen.
function choosing(main) {
  return main.querySelector("[data-choosing]") !== null;
}

// A box that a script has made says "on" where its default is empty: of boxes only the tick counts.
function typed(el) {
  return el.matches("[type=checkbox], [type=radio]") ? el.checked !== el.defaultChecked : el.value !== el.defaultValue;
}

function replace(main, page, enhance) {
  const fresh = page.querySelector("main");
  if (!fresh) return;
  const open = [...main.querySelectorAll("details[open]")].map((d) => d.id);
  const focus = main.contains(document.activeElement) ? pathTo(document.activeElement, main) : null;
  const before = main.querySelector("h1")?.textContent;

  main.replaceChildren(...fresh.childNodes);
  enhance(main);
  document.title = page.title;

  for (const id of open) {
    const details = id && document.getElementById(id);
    if (details) details.open = true;
  }
  if (focus) follow(focus, main)?.focus({ preventScroll: true });
  const heading = main.querySelector("h1")?.textContent;
  if (heading !== before) document.getElementById("announce").textContent = heading;
}

// pathTo finds an element again in the next rendering: by what it leads to, else by its place.
function pathTo(el, main) {
  if (el.id) return { selector: `#${CSS.escape(el.id)}`, index: 0 };
  const href = el.getAttribute("href");
  const selector = href ? `${el.localName}[href="${CSS.escape(href)}"]` : el.localName;
  return { selector, index: [...main.querySelectorAll(selector)].indexOf(el) };
}

function follow({ selector, index }, main) {
  return main.querySelectorAll(selector)[index];
}
