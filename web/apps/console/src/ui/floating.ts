// Where menus and hints are drawn.

/** The window that is open, since nothing else is above it; otherwise the page's main part, which is a landmark. */
export function floatingPlace(): HTMLElement {
  return document.querySelector<HTMLElement>("dialog[open]") ?? document.getElementById("main") ?? document.body;
}
