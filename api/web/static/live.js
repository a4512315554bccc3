// Listens for what the service has to say while a page stands open. A hidden page listens to nothing: browsers open only a
// few connections to one site, and each stream is one.

// listen calls onChange when something that the page shows has changed: at once for another status, and at most every few
// seconds for checks, which come and go all the time. It reports by connected() whether it hears anything.
export function listen(main, onChange) {
  const calm = 5000;
  let stream = null;
  let timer = 0;
  let last = Date.now();

  const soon = (delay) => {
    clearTimeout(timer);
    // Not all who look at a page ask for it in the same moment.
    timer = setTimeout(() => { last = Date.now(); onChange(); }, delay + Math.random() * 300);
  };

  const hear = (event) => {
    let said;
    try {
      said = JSON.parse(event.data);
    } catch {
      return;
    }
    if (said.status || said.incidents || main.dataset.eager !== undefined) soon(0);
    else if (said.checks) soon(Math.max(0, last + calm - Date.now()));
  };

  const open = () => {
    if (stream || document.hidden || !main.dataset.live) return;
    stream = new EventSource(main.dataset.live);
    stream.addEventListener("change", hear);
    stream.addEventListener("error", () => {
      if (stream?.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
      stream = null; // refused: the page is asked for from time to time instead
    });
  };

  const close = () => {
    stream?.close();
    stream = null;
  };

  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  open();
  return {
    connected: () => stream?.readyState === EventSource.OPEN,
    // The page has been replaced: it may show other endpoints.
    reopen: () => { close(); open(); },
  };
}
