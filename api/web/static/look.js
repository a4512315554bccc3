// Shows a conversation with an endpoint step by step while it happens: sends the form that asks for it, reads the events of the
// answer, and puts the page that comes last in place of this one. Without this module the form is sent the plain way, and the
// page comes when all is over.
import { say } from "./words.js";

const asks = (form, button) =>
  form.dataset.look !== undefined && (button?.value === "test" || (!button && !form.querySelector('[name="action"][value="save"]')));

export function watchConversations(main, enhance) {
  main?.addEventListener("submit", (event) => {
    const form = event.target, button = event.submitter;
    if (!asks(form, button) || (!form.noValidate && !form.reportValidity())) return;
    event.preventDefault();
    look(form, button, main, enhance);
  });
}

async function look(form, button, main, enhance) {
  const talk = stage(form);
  const address = new URL(form.getAttribute("action"), location.href).href; // a field may be called action
  const buttons = [...form.querySelectorAll("button")];
  for (const b of buttons) b.disabled = true;
  const body = new URLSearchParams(new FormData(form));
  body.set("action", "test");
  try {
    const answer = await fetch(address, { method: "POST", body, headers: { Accept: "text/event-stream, text/html" } });
    if (answer.redirected) return location.assign(answer.url);
    const streamed = answer.headers.get("Content-Type")?.startsWith("text/event-stream");
    const page = streamed ? await follow(answer.body, talk) : await answer.text();
    if (!page) throw new Error("the conversation broke off");
    turn(page, address, main, enhance);
  } catch {
    talk.root.querySelector("[data-broke]").hidden = false;
    talk.root.classList.remove("busy");
    for (const b of buttons) b.disabled = false;
  }
}

// stage returns where the steps are shown: made of the page's own template, above the form.
function stage(form) {
  document.getElementById("talk")?.remove();
  const root = document.getElementById("talk-template").content.firstElementChild.cloneNode(true);
  form.before(root);
  root.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  return { root, list: root.querySelector("ol"), rows: [] };
}

async function follow(stream, talk) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return null;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const [, event, data] = /^event: (.*)\ndata: (.*)$/s.exec(text.slice(0, end)) ?? [];
      if (event === "page") return JSON.parse(data);
      if (event === "step") tell(JSON.parse(data), talk);
    }
  }
}

function tell(step, { root, list, rows }) {
  let row = rows[step.at];
  if (!row) {
    row = rows[step.at] = root.querySelector("template").content.firstElementChild.cloneNode(true);
    row.querySelector("code").textContent = step.name;
    list.append(row);
  }
  if (!step.done) return;
  row.className = `is-${step.tone}`;
  row.querySelector("[data-latency]").textContent = step.latency;
  const said = [step.class, step.code || "", step.message && say("“%s”", step.message)].filter(Boolean).join(" ");
  row.querySelector("[data-said]").textContent = said || row.dataset.ok;
}

// turn puts the page that came in place of this one. Its address is that of the form: going back leads to where we were.
function turn(page, address, main, enhance) {
  const fresh = new DOMParser().parseFromString(page, "text/html");
  const content = fresh.querySelector("main");
  if (!content) throw new Error("no page");
  if (address !== location.href) history.pushState(null, "", address);
  shown = place();
  const first = content.querySelector("[autofocus]");
  first?.removeAttribute("autofocus"); // browsers heed it while a page loads, and complain of it later
  main.replaceChildren(...content.childNodes);
  document.title = fresh.title;
  enhance(main);
  (first ?? main).focus();
  main.querySelector(".tested, .problems")?.scrollIntoView({ block: "start" });
}

// Browsers tell of a step within the page as well, such as to a mistake in the list of them: it needs no other page.
const place = () => location.pathname + location.search;
let shown = place();
addEventListener("popstate", () => { if (place() !== shown) location.reload(); });
