// Small comforts over pages that work without script. Nothing here is needed to read, choose, order or sign in.
"use strict";

// A second click on a button that is already at work sends nothing. The button is never disabled (that would drop its
// name and value, and lose the focus); coming back with the browser's Back arms the form again.
document.addEventListener("submit", (event) => {
  const form = event.target;
  // getAttribute, because a field named "method" hides form.method; htmx guards its own forms (hx-disabled-elt, hx-sync).
  if (form.getAttribute("method")?.toLowerCase() !== "post" || form.hasAttribute("hx-post") || event.defaultPrevented) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  event.submitter?.setAttribute("aria-busy", "true");
});
window.addEventListener("pageshow", () => {
  document.querySelectorAll("form[data-sent]").forEach((form) => {
    delete form.dataset.sent;
    form.querySelectorAll("[aria-busy]").forEach((button) => button.removeAttribute("aria-busy"));
  });
});

// <button data-copy="id-of-the-text" hidden>: shown only where copying can work; tells the result in its own words.
document.querySelectorAll("button[data-copy]").forEach((button) => {
  const source = document.getElementById(button.dataset.copy);
  if (!source || !navigator.clipboard) return;
  button.hidden = false;
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText("value" in source ? source.value : source.textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Could not copy: select the text instead";
    }
    setTimeout(() => { button.textContent = label; }, 2500);
  });
});

// The list of problems takes the focus, so that it is the first thing read.
document.querySelector(".error-summary")?.focus();

// Header menus: one at a time; Escape and a click elsewhere close them.
const menus = document.querySelectorAll("details.menu");
const closeMenus = (except) => menus.forEach((menu) => { if (menu !== except) menu.open = false; });
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector("details.menu[open]");
  if (!open) return;
  open.open = false;
  open.querySelector("summary").focus();
});
