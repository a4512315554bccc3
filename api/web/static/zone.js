// Lets moments be typed and chosen in the reader's own zone, which it names. What is sent stays in UTC, in a hidden field; without this
// module forms take UTC and say so.
import { locale, say } from "./words.js";

const { timeZone } = Intl.DateTimeFormat().resolvedOptions();

export function typeLocally(root) {
  if (!timeZone || /^(Etc\/)?(UTC|GMT)$/.test(timeZone)) return;
  for (const input of root.querySelectorAll("input[data-utc]")) adopt(input);
  for (const words of root.querySelectorAll("[data-zone]")) {
    words.textContent = { note: say("All times are in your zone, %s.", timeZone), optional: say("%s, optional", timeZone) }[words.dataset.zone] ?? timeZone;
    words.removeAttribute("data-zone");
  }
  for (const option of root.querySelectorAll('select[name="for"] option[value="morning"]')) riseLocally(option);
}

// adopt has an input hold the local time of the moment it came with, and a hidden field beside it what is meant.
function adopt(input) {
  input.removeAttribute("data-utc");
  const came = new Date(`${input.getAttribute("value")}Z`);
  const valid = !Number.isNaN(came.getTime());
  const sent = document.createElement("input");
  sent.type = "hidden";
  sent.name = input.name;
  input.removeAttribute("name");
  input.after(sent);
  input.defaultValue = input.value = valid ? local(came) : ""; // whoever asks whether somebody typed here compares the two
  const first = input.value;
  const follow = () => {
    // Untouched it means what it came with, also in the hour that a change of the clocks repeats.
    const at = valid && input.value === first ? came : new Date(input.value);
    sent.value = Number.isNaN(at.getTime()) ? "" : at.toISOString().slice(0, 16);
    input.title = sent.value && `${sent.value.replace("T", " ")} UTC`;
  };
  input.addEventListener("input", follow);
  input.addEventListener("change", () => {
    const at = new Date(input.value);
    if (input.value !== first && !Number.isNaN(at.getTime())) input.value = local(at); // an hour that the clocks skip is the one after it
    follow();
  });
  input.form?.addEventListener("reset", () => setTimeout(follow)); // the event comes before what it tells of
  follow();
}

// riseLocally has nine in the morning be that of the reader. Which moment that is shows when the form is sent: a page may stand open.
function riseLocally(option) {
  const clock = new Intl.DateTimeFormat(locale, { hour: "numeric", minute: "2-digit", timeZoneName: "short" });
  option.textContent = say("until %s", clock.format(nextMorning()));
  option.form.addEventListener("formdata", ({ formData }) => {
    if (formData.get("for") === "morning") formData.set("for", nextMorning().toISOString());
  });
}

function nextMorning() {
  const at = new Date();
  at.setHours(9, 0, 0, 0);
  if (at <= Date.now()) at.setDate(at.getDate() + 1);
  return at;
}

function local(at) {
  const two = (n) => String(n).padStart(2, "0");
  return `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${two(at.getHours())}:${two(at.getMinutes())}`;
}
