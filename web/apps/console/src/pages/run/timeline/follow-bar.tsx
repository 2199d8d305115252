// The bar below the timeline: what happens now, and whether the end is followed.
import type { RunView } from "@runyard/react";
import { memo } from "react";
import { plural, t, useLanguage } from "../../../i18n";
import { Button, clockText, Elapsed, Icon, Kbd, stateText, visible, type IconName } from "../../../ui";
import { happening, type Happening } from "../now";
import { SeqLink } from "../seq-link";
import { toolText } from "../words";

/** The bar. Its height never changes. */
export const FollowBar = memo(function FollowBar({
  view,
  runId,
  following,
  fresh,
  onFollow,
}: {
  view: RunView;
  runId: string;
  following: boolean;
  fresh: number;
  onFollow: () => void;
}) {
  useLanguage();
  const now = happening(view);
  const ended = now.kind === "ended";
  return (
    <div className="follow">
      <Icon name={ICONS[now.kind]} small />
      <span className="trunc" data-now={now.kind}>
        <Words now={now} runId={runId} />
      </span>
      {/* The most needed first: what has no room goes. */}
      <span className={following ? "end end--yields" : "end"}>
        {following ? (
          !ended && <span>{t("run.following")}</span>
        ) : (
          <Button icon="down" onClick={onFollow}>
            <span className="follow__word">{fresh > 0 ? plural(fresh, "run.newOne", "run.newMany") : t("run.toEnd")}</span>
            {fresh > 0 && (
              <span className="follow__short" aria-hidden="true">
                {fresh}
              </span>
            )}
          </Button>
        )}
        {/* The key stands beside the words for what it does, and goes with them. */}
        {!(following && ended) && <Kbd>⇧G</Kbd>}
        {following && <span className="num">{t("run.stored", { count: view.lastSequence })}</span>}
      </span>
    </div>
  );
});

const ICONS: Record<Happening["kind"], IconName> = {
  nothing: "clock",
  ended: "completed",
  state: "preparing",
  cancelling: "cancelled",
  person: "needs_approval",
  tool: "terminal",
  writing: "message",
  model: "agent",
  idle: "clock",
};

function Words({ now, runId }: { now: Happening; runId: string }) {
  switch (now.kind) {
    case "nothing":
      return t("run.now.nothing");
    case "ended":
      return t("run.now.ended", { time: clockText(now.since) });
    case "person":
      return (
        <>
          {plural(now.count, "run.now.personOne", "run.now.personMany")} · <Elapsed since={now.since} />
        </>
      );
    case "state":
      return (
        <>
          {stateText(now.state)} · <Elapsed since={now.since} />
        </>
      );
    case "cancelling":
      return (
        <>
          {t("run.now.cancelling")} · <Elapsed since={now.since} />
        </>
      );
    case "tool":
      return (
        <>
          {toolText(now.tool)} <code>{visible(now.summary)}</code> · <Elapsed since={now.since} />{" "}
          <SeqLink id={runId} sequence={now.sequence} />
        </>
      );
    case "writing":
      return (
        <>
          {t("run.now.writing")} · <Elapsed since={now.since} />
        </>
      );
    case "model":
      return (
        <>
          {t("run.now.model", { time: clockText(now.since) })} · <Elapsed since={now.since} />
        </>
      );
    case "idle":
      return (
        <>
          {t("run.now.idle")} · <Elapsed since={now.since} />
        </>
      );
  }
}
