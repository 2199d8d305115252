// The heading over the rows of a turn.
import type { Row } from "@runyard/react";
import { t } from "../../../../i18n";
import { clockText } from "../../../../ui";
import { firstLine, tookText } from "../../words";

/** Number, what was asked, when, how long, how much. */
export function TurnHeading({ row, until }: { row: Row & { kind: "turn" }; until: number | undefined }) {
  const asked = firstLine(row.command?.text ?? "", 80);
  const lasted = row.outcome === undefined ? "" : tookText(row);
  const facts = [
    clockText(row.at),
    lasted,
    row.outcome === "interrupted" ? t("run.interrupted") : "",
    until === undefined ? "" : t("run.eventCount", { count: until - row.first }),
  ];
  return (
    <>
      <h2 className="trunc">
        {asked === "" ? t("run.turn", { number: row.number }) : t("run.turnOf", { number: row.number, what: asked })}
      </h2>
      <span className="muted">{facts.filter(Boolean).join(" · ")}</span>
    </>
  );
}
