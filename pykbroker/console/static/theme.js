// The theme that the reader chose, before the first paint. Without a choice the system's one holds.
(() => {
  try {
    const chosen = localStorage.getItem("pykbroker-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing: the system's theme holds.
  }
})();
