// Every page works without this module; it adds comfort only.
import { localise } from "./times.js";
import { enableCopying } from "./copy.js";
import { keepFresh } from "./refresh.js";
import { countPicks } from "./pick.js";
import { watchConversations } from "./look.js";
import { typeLocally } from "./zone.js";

const main = document.querySelector("main");
const enhance = (root) => {
  localise(root);
  enableCopying(root);
  countPicks(root);
  typeLocally(root);
};

enhance(document);
setInterval(() => localise(document), 5000);
keepFresh(document.querySelector("main[data-refresh]"), enhance);
watchConversations(main, enhance);

// A menu closes when somebody turns to something else.
const menu = document.getElementById("menu");
addEventListener("click", (event) => { if (menu?.open && !menu.contains(event.target)) menu.open = false; });
addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !menu?.open) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
