// The calls of this tab, to be looked at and to begin from.
import { t } from "../../i18n";
import { Button, Clock, Icon, visible } from "../../ui";
import { forgetCalls, type PastCall } from "./remembered";

const SHOWN_CHARS_MAX = 120;

/** The past calls of an action, the latest first. */
export function History({ calls, action, onUse, onForget }: {
  calls: readonly PastCall[];
  action: string;
  onUse: (call: PastCall) => void;
  onForget: (calls: PastCall[]) => void;
}) {
  if (calls.length === 0) return null;
  return (
    <details className="devhistory">
      <summary>{t("dev.history", { count: calls.length })}</summary>
      <ul>
        {calls.map((call) => (
          <li key={call.at}>
            <button type="button" className="devhistory__call" onClick={() => onUse(call)} title={t("dev.useAgain")}>
              <span className={`verdict verdict--${call.outcome === "ok" ? "ok" : "bad"}`}>
                <Icon name={call.outcome === "ok" ? "completed" : "failed"} small />
                {call.outcome}
              </span>
              <code className="trunc">{visible(JSON.stringify(call.input) ?? "").slice(0, SHOWN_CHARS_MAX)}</code>
              <span className="muted num">
                <Clock at={call.at} /> · {t("dev.took", { ms: call.durationMs })}
              </span>
            </button>
          </li>
        ))}
      </ul>
      <Button kind="ghost" onClick={() => onForget(forgetCalls(action))}>
        {t("dev.forget")}
      </Button>
    </details>
  );
}
