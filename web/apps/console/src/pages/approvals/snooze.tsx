// Deciding later is no decision: the approval stays open and expires later by as much.
import { useClient, type Failing } from "@runyard/react";
import { useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, ErrorNote, Menu, type MenuItem } from "../../ui";

const MINUTE_MS = 60_000;
const TOMORROW_HOUR = 9;

/** How long it is until tomorrow morning. */
export function untilTomorrow(now: Date): number {
  const morning = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1, TOMORROW_HOUR);
  return morning.getTime() - now.getTime();
}

/** The menu that puts an approval off. */
export function Snooze({ id, disabledReason }: { id: string; disabledReason?: string | undefined }) {
  useLanguage();
  const client = useClient();
  const [error, setError] = useState<Failing | null>(null);
  const [pending, setPending] = useState(false);
  async function snooze(forMs: number): Promise<void> {
    if (pending) return;
    setPending(true);
    const envelope = await client.call("approval_snooze", { id, forMs }, { confirm: true });
    setPending(false);
    setError(envelope.ok ? null : envelope.error);
  }
  const item = (key: "short" | "hour" | "tomorrow", forMs: () => number): MenuItem => ({
    key,
    label: t(`approvals.snooze.${key}`),
    disabledReason,
    onSelect: () => void snooze(forMs()),
  });
  const times = [
    item("short", () => 15 * MINUTE_MS),
    item("hour", () => 60 * MINUTE_MS),
    item("tomorrow", () => untilTomorrow(new Date())),
  ];
  return (
    <>
      <Menu
        label={t("approvals.snooze.label")}
        align="start"
        trigger={
          <button type="button" className="btn btn--ghost" title={t("approvals.snooze.help")} aria-busy={pending || undefined}>
            {t("approvals.snooze.label")}
          </button>
        }
        groups={[times]}
      />
      {error && <ErrorNote error={error} action={<Button onClick={() => setError(null)}>{t("approvals.dismiss")}</Button>} />}
    </>
  );
}
