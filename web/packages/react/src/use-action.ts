// An action in a component.

import type { ActionTypes, InputOf, NameOf, OutputOf } from "@runyard/client";
import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { Invocation, type InvocationControls, type InvocationState } from "./invocation.js";
import { useProvided, type RegisteredActions } from "./provider.js";

/** An action in a component: where its call stands, and what can be done with it. */
export type ActionHandle<Input, Output> = InvocationState<Input, Output> & InvocationControls<Input, Output>;

/** How an action is used. */
export interface UseActionOptions {
  /** Whether a call goes on when the component leaves; else it ends with it, as a call ends with whoever made it. */
  outlives?: boolean;
}

/**
 * An action. One that needs a confirmation stops in `confirming` and sends nothing until `confirm()`. For actions that are
 * known only when the program runs: `useAction<AnyActions>(name)`.
 */
export function useAction<
  Actions extends ActionTypes<Actions> = RegisteredActions,
  Name extends NameOf<Actions> = NameOf<Actions>,
>(name: Name, { outlives = false }: UseActionOptions = {}): ActionHandle<InputOf<Actions, Name>, OutputOf<Actions, Name>> {
  const { caller, confirm } = useProvided();
  const invocation = useMemo(
    () => new Invocation<InputOf<Actions, Name>, OutputOf<Actions, Name>>(caller, name, null, outlives),
    [caller, name, outlives],
  );
  useEffect(() => {
    invocation.ask = confirm;
  }, [invocation, confirm]);
  useLeaving(invocation);
  const state = useSyncExternalStore(invocation.subscribe, invocation.get, invocation.get);
  const { invoke, cancel, dismiss } = invocation;
  return useMemo(
    () => ({ ...state, invoke, confirm: invocation.confirm, dismiss, cancel }),
    [state, invocation, invoke, dismiss, cancel],
  );
}

/** Says when nobody looks any more. In strict mode a component leaves and comes back at once, which is no leaving. */
function useLeaving(invocation: Pick<Invocation<never, unknown>, "leave">): void {
  const mounted = useRef(0);
  useEffect(() => {
    mounted.current += 1;
    return () => {
      mounted.current -= 1;
      queueMicrotask(() => {
        if (mounted.current === 0) invocation.leave();
      });
    };
  }, [invocation]);
}
