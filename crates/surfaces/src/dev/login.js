// Trades the one-time code in the address for a session. The code stands after the number sign, so that no server saw it so far.
const status = document.getElementById("status");
const help = document.getElementById("help");

async function logIn(code) {
  help.hidden = true;
  status.classList.remove("bad");
  status.textContent = "Logging in…";
  const response = await fetch("/login", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ code }),
  });
  const envelope = await response.json();
  if (!envelope.ok) throw new Error(envelope.error.message);
  // Only pages of this origin, port included, can read it; the cookie goes to every port of this host.
  localStorage.setItem("runyard.page", envelope.data.pageKey);
  location.replace("/dev");
}

function start() {
  const code = location.hash.slice(1);
  // Whoever is sent here from the page brings what stood behind its number sign, which is no code.
  if (!/^[0-9a-f]{64}$/.test(code)) return;
  history.replaceState(null, "", "/login");
  logIn(code).catch((error) => {
    help.hidden = false;
    status.classList.add("bad");
    status.textContent = error.message;
  });
}

// A link that is opened where this page stands already changes only what is after the number sign.
addEventListener("hashchange", start);
start();
