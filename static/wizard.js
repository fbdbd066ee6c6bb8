// The wizard's comforts: context chips that fill their field. Without script the field alone is enough.
"use strict";

const showChips = (root) => root.querySelectorAll("[data-chips]").forEach((list) => { list.hidden = false; });
showChips(document);
document.addEventListener("htmx:oobAfterSwap", () => showChips(document));
document.addEventListener("htmx:afterSettle", () => showChips(document));

document.addEventListener("click", (event) => {
  const chip = event.target.closest("button[data-set]");
  if (!chip) return;
  const field = document.getElementById(chip.dataset.set);
  field.value = chip.dataset.value;
  field.dispatchEvent(new Event("change", { bubbles: true }));
});
