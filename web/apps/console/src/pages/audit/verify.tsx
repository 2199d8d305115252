// Whether the record still holds. What a check found stays on the page.
import { useAction } from "@runyard/react";
import { useState } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { Button, Clock, Copy, ErrorNote, Icon } from "../../ui";
import type { Answer } from "../system/data";
import { shortHash } from "./entries";

/** The state of the chain, and the button that checks it. */
export function Verify({ onVerified }: { onVerified?: () => void }) {
  useLanguage();
  const verify = useAction("audit_verify");
  const [last, setLast] = useState<{ at: string; found: Answer<"audit_verify"> } | null>(null);
  const run = async () => {
    const envelope = await verify.invoke({});
    setLast(envelope?.ok ? { at: new Date().toISOString(), found: envelope.data } : null);
    if (envelope?.ok) onVerified?.();
  };
  return (
    <div className="chain">
      <div className="chain__line" role="status">
        {verify.error ? (
          <span className="verdict verdict--bad">
            <Icon name="failed" />
            {t("audit.broken")}
          </span>
        ) : last ? (
          <span className="verdict verdict--ok">
            <Icon name="completed" />
            {plural(last.found.entries, "audit.wholeOne", "audit.whole")}
          </span>
        ) : (
          <span className="muted">
            <Icon name="link" /> {t("audit.notChecked")}
          </span>
        )}
        {last?.found.head !== undefined && (
          <span className="chain__head">
            {t("audit.head")} <code title={last.found.head}>{shortHash(last.found.head)}</code>
            <Copy text={last.found.head} label={t("audit.copyHead")} />
          </span>
        )}
        {last && (
          <span className="muted">
            {t("audit.checkedAt")} <Clock at={last.at} />
          </span>
        )}
      </div>
      <Button icon="shield" pending={verify.status === "running"} onClick={() => void run()}>
        {t("audit.verify")}
      </Button>
      {verify.error && <ErrorNote error={verify.error} />}
    </div>
  );
}
