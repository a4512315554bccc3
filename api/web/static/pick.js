// Says how many endpoints of a list are ticked, and ticks all of them at once.

export function countPicks(root) {
  const form = root.querySelector("form.bulk");
  const count = form?.querySelector("[data-count]");
  if (!count || form.dataset.counted) return;
  form.dataset.counted = "yes";
  const words = count.textContent;
  const picks = () => [...form.querySelectorAll(".c-pick input[name]")];
  const tell = () => {
    const n = picks().filter((p) => p.checked).length;
    count.textContent = `${words} ${n}`;
    for (const all of form.querySelectorAll("[data-all]")) all.checked = n > 0 && n === picks().length;
  };
  for (const head of form.querySelectorAll("thead:not(.unseen) .c-pick")) {
    const all = document.createElement("input");
    all.type = "checkbox";
    all.dataset.all = "";
    all.setAttribute("aria-label", head.textContent.trim());
    all.addEventListener("change", () => {
      for (const p of picks()) p.checked = all.checked;
      tell();
    });
    const room = document.createElement("label"); // as large for a finger as those of the rows
    room.append(all);
    head.replaceChildren(room);
  }
  form.addEventListener("change", tell);
}
