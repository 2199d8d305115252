// One action: its form, the call, and what comes of it. One call at a time.
import { useAction, type ActionManifest, type AnyActions } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { useEffect, useId, useRef, useState, type FormEvent } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, EffectButton, PageTitle, useShortcut, visible } from "../../ui";
import { ConfirmCall } from "./confirm";
import { CopyBar } from "./copy-bar";
import { callLabel } from "./deed";
import { History } from "./history";
import { InputFields } from "./input-fields";
import { EMPTY, inputOf, readCall, switched, type DevInput, type DevProblems } from "./input";
import { Leave } from "./leave";
import { Marks } from "./list";
import { pastCalls, rememberCall, rememberedInput, rememberInput } from "./remembered";
import { Result } from "./result";

const FIRST_FIELD = ".devinput :is(input, textarea, select), [data-call]";
const NO_PROBLEMS: DevProblems = { issues: [] };

/** An action with all that can be done with it. It is mounted anew for each. */
export function ActionPanel({ action, application, onLoggedOut }: {
  action: ActionManifest;
  application: string;
  onLoggedOut: () => void;
}) {
  useLanguage();
  const call = useAction<AnyActions, string>(action.name);
  const [input, setInput] = useState<DevInput>(() => rememberedInput(action.name) ?? EMPTY);
  const [problems, setProblems] = useState<DevProblems>(NO_PROBLEMS);
  const [past, setPast] = useState(() => pastCalls(action.name));
  const form = useRef<HTMLFormElement>(null);
  const prefix = useId();
  const running = call.status === "running";
  const spoken = useSpoken(call);

  // What is chosen is there to be filled in.
  useEffect(() => void form.current?.querySelector<HTMLElement>(FIRST_FIELD)?.focus(), []);
  useShortcut("mod+enter", "dev.runKey", () => void run());

  const change = (next: DevInput) => {
    setInput(next);
    rememberInput(action.name, next);
  };
  const read = () => {
    const found = readCall(action, input);
    setProblems(found.ok ? NO_PROBLEMS : found.problems);
    return found.ok ? found.call : null;
  };
  const run = async () => {
    const given = running ? null : read();
    if (!given) return;
    const { input: value, confirm: _confirmedLater, timeoutMs, ...options } = given;
    const envelope = await call.invoke(value, { ...options, ...(typeof timeoutMs === "number" && { timeoutMs }) });
    if (!envelope.ok && envelope.meta.invocationId === "" && envelope.error.code === "CANCELLED") return;
    if (!envelope.ok) setProblems({ issues: envelope.error.issues });
    if (!envelope.ok && envelope.error.code === "AUTHENTICATION_ERROR") onLoggedOut();
    const { timeout, key } = input;
    const outcome = envelope.ok ? "ok" : envelope.error.code;
    const { durationMs } = envelope.meta;
    setPast(rememberCall(action.name, { at: new Date().toISOString(), input: value, timeout, key, outcome, durationMs }));
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Enter in a field is no decision.
    if (!takesEffect(action)) void run();
  };
  const switchTo = (mode: DevInput["mode"]) => {
    const next = switched(action, input, mode);
    change(next.input);
    setProblems(next.issues.length ? { issues: next.issues } : NO_PROBLEMS);
  };
  const fill = (value: unknown, more: Partial<DevInput> = {}) => {
    change({ ...inputOf(action, value, input), ...more });
    setProblems(NO_PROBLEMS);
  };
  const shown = call.status === "running" || call.status === "ok" || call.status === "error";
  return (
    <>
      <div className="devhead">
        <Link to="/dev" className="devhead__back">
          {t("dev.back")}
        </Link>
        <PageTitle name={action.name}>{visible(action.title)}</PageTitle>
        <code id="dev-name">{visible(action.name)}</code>
        <Marks action={action} />
        <p className="muted" id="dev-description">
          {visible(action.description)}
        </p>
      </div>
      <div className={`devwork${shown ? " devwork--two" : ""}`}>
        <form className="devform" ref={form} onSubmit={submit} noValidate>
          <InputFields
            action={action}
            input={input}
            problems={problems}
            idPrefix={prefix}
            onChange={change}
            onSwitch={switchTo}
            onExample={fill}
          />
          <div className="devform__acts">
            <CallButton action={action} running={running} onCall={() => void run()} />
            <Button large icon="x" disabledReason={running ? undefined : t("dev.nothingRuns")} onClick={call.cancel}>
              {t("dev.stop")}
            </Button>
          </div>
          <CopyBar action={action} application={application} read={read} />
          <History
            calls={past}
            action={action.name}
            onUse={({ input: value, timeout, key }) => fill(value, { timeout, key })}
            onForget={setPast}
          />
        </form>
        {shown && (
          <Result running={running} logs={spoken} progress={call.progress} artifacts={call.artifacts} envelope={call.envelope} />
        )}
      </div>
      {call.status === "confirming" && (
        <ConfirmCall action={action} input={call.pending} label={callLabel(action)} onYes={call.confirm} onNo={call.dismiss} />
      )}
      <Leave running={running} action={action.name} onStop={call.cancel} />
    </>
  );
}

/** Whether pressing the button takes effect at once: what asks first only leads to the button that does. */
function takesEffect(action: ActionManifest): boolean {
  return action.sideEffects !== "read" && !action.requiresConfirmation;
}

function CallButton({ action, running, onCall }: { action: ActionManifest; running: boolean; onCall: () => void }) {
  const label = callLabel(action);
  const given = { large: true, icon: "running", disabledReason: running ? t("dev.runsAlready") : undefined } as const;
  const danger = action.sideEffects === "destructive";
  if (takesEffect(action)) return <EffectButton {...given} data-call label={label} danger={danger} onClick={onCall} />;
  return (
    <Button {...given} data-call type="submit" kind={danger ? "reject" : "ink"}>
      {action.requiresConfirmation ? t("dev.asks", { deed: label.text }) : label.text}
    </Button>
  );
}

/** What the action said. An envelope of a call that was stopped has no lines, so those that came before stay. */
function useSpoken(call: { status: string; logs: ReturnType<typeof useAction>["logs"] }): ReturnType<typeof useAction>["logs"] {
  const heard = useRef(call.logs);
  if (call.status === "running" || call.logs.length > 0) heard.current = call.logs;
  return heard.current;
}
