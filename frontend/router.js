// Addresses behind the hash: every list and unit has one, and the back button goes through them.

/** {path: ["units", id], query: {name: value}} of the address now. */
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return {
    path: path.split("/").filter(Boolean).map(unescaped),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function unescaped(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a path, with what of the query is not empty. */
export function to(path, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const asked = new URLSearchParams(kept).toString();
  return `#/${[path].flat().map(encodeURIComponent).join("/")}${asked ? `?${asked}` : ""}`;
}

export function go(address, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, "", address);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else if (location.hash === address) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = address;
}
