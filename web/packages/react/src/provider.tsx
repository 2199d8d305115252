// Gives a client to all components below.

import type { ActionTypes, Client, HubActions } from "@runyard/client";
import { createContext, use, useMemo, type ReactNode } from "react";
import type { Caller, Confirm } from "./invocation.js";

/** An application names its own actions here: `declare module "@runyard/react" { interface Register { actions: MyActions } }`. */
export interface Register {}

/** The actions that hooks know the types of: the application's own, or else a hub's. */
export type RegisteredActions = Register extends { actions: infer Actions extends ActionTypes<Actions> } ? Actions : HubActions;

interface Provided {
  client: Client<RegisteredActions>;
  caller: Caller;
  confirm: Confirm | null;
}

const Context = createContext<Provided | null>(null);

/** What the provider needs. */
export interface RunyardProviderProps<Actions extends ActionTypes<Actions>> {
  client: Client<Actions>;
  /** Asks a person before an action that needs it; without it the component that calls shows the step itself. */
  confirm?: Confirm;
  children?: ReactNode;
}

/** Gives a client to all components below. */
export function RunyardProvider<Actions extends ActionTypes<Actions>>(props: RunyardProviderProps<Actions>) {
  const { client, confirm, children } = props;
  const provided = useMemo(() => ({ ...seenAs(client), confirm: confirm ?? null }), [client, confirm]);
  return <Context value={provided}>{children}</Context>;
}

/** A client's types are erased when the program runs, so the context holds it by the types that hooks promise. */
function seenAs(client: unknown): Pick<Provided, "client" | "caller"> {
  return { client: client as Client<RegisteredActions>, caller: client as Caller };
}

/** What the provider gives. */
export function useProvided(): Provided {
  const provided = use(Context);
  if (provided === null) throw new Error("There is no RunyardProvider above this component.");
  return provided;
}

/** The client. */
export function useClient(): Client<RegisteredActions> {
  return useProvided().client;
}
