// Says that the run is degraded, and leads to where that is written.
import type { RunView } from "@runyard/react";
import { memo, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { Icon } from "../../ui";
import { SeqLink } from "./seq-link";
import { degradedText } from "./words";

/** The banner. What comes while somebody looks is said by the flag and in the timeline: here it would move all that is read. */
export const DegradedBanner = memo(function DegradedBanner({ id, view }: { id: string; view: RunView }) {
  useLanguage();
  const [openedAt] = useState(() => Date.now());
  const degraded = view.degraded.filter(({ sequence }) => isBefore(view, sequence, openedAt));
  const [first] = degraded;
  if (first === undefined) return null;
  return (
    <div className="banner st-degraded" role="note">
      <Icon name="degraded" />
      <span>
        <b className="strong">{t("run.degradedTitle")}</b> {degradedText(first.reason)}
        {degraded.length > 1 && <> {t("run.degradedMore", { count: degraded.length - 1 })}</>}
      </span>
      <SeqLink id={id} sequence={first.sequence} className="btn">
        {t("run.showEvidence")}
      </SeqLink>
    </div>
  );
});

function isBefore({ rows }: RunView, sequence: number, time: number): boolean {
  const index = rows.indexOf(sequence);
  return index === -1 || Date.parse(rows.at(index).at) < time;
}
