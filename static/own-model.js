// The form for one's own model: only headers leave the browser, and what the wizard has by now goes along.
"use strict";

const MOST_HEADER = 24 * 1024 * 1024;

async function header(file) {
  if (file.name.endsWith(".safetensors") && file.size > 8) {
    const length = new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true);
    return file.slice(0, length < MOST_HEADER ? 8 + Number(length) : 8);
  }
  return file.slice(0, MOST_HEADER);
}

document.addEventListener("change", async (event) => {
  const input = event.target;
  if (!(input instanceof HTMLInputElement) || input.name !== "weights" || !input.files.length) return;
  const files = Array.from(input.files);
  const starts = new DataTransfer();
  for (const file of files) starts.items.add(new File([await header(file)], file.name, { type: file.type }));
  input.files = starts.files;
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  const wizard = document.getElementById("wizard");
  if (!form.matches("[data-own-model]") || !wizard) return;
  const answers = new URLSearchParams(new FormData(wizard));
  form.action = `${form.action.split("?")[0]}?${answers}`;
});
