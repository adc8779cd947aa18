// Light or dark before the first paint: what was chosen here, else what the system says, also later.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("cq-dark-mode");
    } catch {
      return null;
    }
  };
  const apply = () => {
    const dark = chosen() === null ? system.matches : chosen() === "true";
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    dispatchEvent(new Event("cq-theme"));
  };
  system.addEventListener("change", apply);
  addEventListener("storage", apply);
  globalThis.cqTheme = {
    dark: () => document.documentElement.dataset.theme === "dark",
    toggle() {
      const dark = !this.dark();
      try {
        localStorage.setItem("cq-dark-mode", String(dark));
        apply();
      } catch {
        document.documentElement.dataset.theme = dark ? "dark" : "light";
        dispatchEvent(new Event("cq-theme"));
      }
    },
  };
  apply();
})();
