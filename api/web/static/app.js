// Every page works without this module; it adds comfort only.
import { localise } from "./times.js";
import { enableCopying } from "./copy.js";
import { keepFresh } from "./refresh.js";

const enhance = (root) => {
  localise(root);
  enableCopying(root);
};

enhance(document);
setInterval(() => localise(document), 5000);
keepFresh(document.querySelector("main[data-refresh]"), enhance);
