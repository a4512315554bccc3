// Gives each snippet a button that copies it. Without a clipboard (plain http to another machine) the text is selected
// instead, ready for the keyboard.
import { say } from "./words.js";

export function enableCopying(root) {
  for (const button of root.querySelectorAll("button[data-copy]")) {
    const text = document.getElementById(button.dataset.copy);
    if (!text || !button.hidden) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      text.select();
      try {
        await navigator.clipboard.writeText(text.value);
        button.textContent = say("Copied");
      } catch {
        button.textContent = say("Press Ctrl+C");
      }
      setTimeout(() => (button.textContent = say("Copy")), 2000);
    });
  }
}
