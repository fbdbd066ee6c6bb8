// The wizard's comforts: context chips that fill their field, and answers that outlive a detour. Without script the field
// alone is enough.
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

// The wizard's address with the answers as they stand now, also those that no answer of the server has put there yet.
const wizard = document.getElementById("wizard");
const addressOfAnswers = () => {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(wizard)) {
    if (typeof value === "string" && value !== "" && name !== "fields") query.append(name, value);
  }
  const address = new URL("../", wizard.action);
  return `${address.pathname}${query.size ? `?${query}` : ""}`;
};
wizard.addEventListener("change", () => history.replaceState(history.state, "", addressOfAnswers()));

// What a person chose before the scripts had arrived, or a browser put back after a reload, the server has not seen yet.
const answeredUnheard = () => Array.from(wizard.elements).some((field) => {
  if (field instanceof HTMLSelectElement) {
    const given = Array.from(field.options).some((option) => option.defaultSelected);
    return Array.from(field.options).some((option, place) => option.selected !== (given ? option.defaultSelected : place === 0));
  }
  if (!(field instanceof HTMLInputElement)) return false;
  return ["radio", "checkbox"].includes(field.type) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
});
document.addEventListener("htmx:load", () => {
  if (answeredUnheard()) wizard.dispatchEvent(new Event("change", { bubbles: true }));
}, { once: true });

// Choosing a theme and signing in come back to an address: to that one.
document.addEventListener("submit", (event) => {
  const next = event.target.querySelector("input[name=next]");
  if (next && event.target !== wizard) next.value = addressOfAnswers();
}, true);
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href*='?next=']");
  if (!link) return;
  const address = new URL(link.href);
  address.searchParams.set("next", addressOfAnswers());
  link.href = address.href;
}, true);
