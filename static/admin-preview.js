/* Comfort only: presses the form's own Preview button while one types, and takes what it shows. */
(() => {
  "use strict";
  const row = document.querySelector("[data-previewed]");
  const button = row && row.querySelector("[name=_preview]");
  const parts = row && row.dataset.previewed;
  if (!button || !parts) return;
  const form = button.form;
  let asked = 0, timer;

  for (const part of document.querySelectorAll(parts)) part.setAttribute("aria-live", "polite");

  const renew = async () => {
    const number = ++asked;
    const data = new FormData(form);
    data.append(button.name, button.value);
    let page;
    try {
      const answer = await fetch(form.action, { method: "POST", body: data });
      if (!answer.ok) return;
      page = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return;
    }
    // An answer that was overtaken by a later question is old.
    if (number !== asked) return;
    const shown = document.querySelectorAll(parts), renewed = page.querySelectorAll(parts);
    if (shown.length === renewed.length) shown.forEach((part, i) => part.replaceChildren(...renewed[i].childNodes));
  };

  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(renew, 400);
  });
})();
