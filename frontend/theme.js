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
    /** The other one; where that is what the system says, the system is followed from now on. */
    toggle() {
      const dark = !this.dark();
      try {
        if (dark === system.matches) localStorage.removeItem("cq-dark-mode");
        else localStorage.setItem("cq-dark-mode", String(dark));
        apply();
      } catch {
        document.documentElement.dataset.theme = dark ? "dark" : "light";
        dispatchEvent(new Event("cq-theme"));
      }
    },
  };
  apply();
})();
