import { createClient, RunyardProvider, useAction, useHub, useRun, type AnyActions } from "@runyard/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

const client = createClient();
const asked = new URLSearchParams(location.search);

/** Any action: /?action=run_create&input={…} */
function Action({ name, input }: { name: string; input: unknown }) {
  const call = useAction<AnyActions>(name);
  return (
    <section>
      <button onClick={() => void call.invoke(input)}>Call {name}</button>
      {call.status === "confirming" && <button onClick={call.confirm}>Confirm {name}</button>}
      {call.status === "confirming" && <button onClick={call.dismiss}>Dismiss</button>}
      {call.status === "running" && <button onClick={call.cancel}>Cancel</button>}
      <output>{call.status}</output>
      <pre>{JSON.stringify(call.error ?? call.data ?? null)}</pre>
    </section>
  );
}

/** A run as it goes: /?run=run_… */
function Run({ id }: { id: string }) {
  const { link, view } = useRun(id);
  return <p>{`${view.state}, ${view.lastSequence} events in ${view.rows.length} rows, ${link.kind}`}</p>;
}

function Who() {
  const { actor, link } = useHub();
  return <h1>{actor?.id ?? link.kind}</h1>;
}

// A link that was printed for the hub logs in here, too: /#<code>
if (location.hash.length === 65) await client.logIn(location.hash.slice(1));
const [name, run] = [asked.get("action"), asked.get("run")];
createRoot(document.getElementById("app")!).render(
  <StrictMode>
    <RunyardProvider client={client}>
      <Who />
      {name !== null && <Action name={name} input={JSON.parse(asked.get("input") ?? "{}")} />}
      {run !== null && <Run id={run} />}
    </RunyardProvider>
  </StrictMode>,
);
