// Shows the badge that is being chosen at once: asks for the same page with what is chosen and takes the badge and its snippets
// from it. Without this module the button does the same.
import { enableCopying } from "./copy.js";

const form = document.querySelector("form[data-badge]");
const patience = 250; // milliseconds after the last key, so that not every letter of a label is asked for
let waiting = 0;
let latest = 0;

async function show() {
  const turn = ++latest;
  const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.redirected) return location.reload(); // the login has ended
    if (!answer.ok || turn !== latest) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("made");
    if (!fresh || turn !== latest) return;
    document.getElementById("made").replaceChildren(...fresh.childNodes);
    enableCopying(document.getElementById("made"));
    history.replaceState(null, "", address);
  } catch {
    // The service is away: what stands there stays, and the next change tries again.
  }
}

if (form) {
  form.querySelector("button").hidden = true;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(show, patience);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(waiting);
    show();
  });
}
