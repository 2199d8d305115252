// What is recorded of one run: who decided what, the chain of its events, and how anybody can check it without a hub.
import { useHub, type RunSnapshot } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { useEffect, useMemo, useRef, useState } from "react";
import { maybe, t, useLanguage } from "../../i18n";
import { Block, Clock, Copy, CopyButton, Empty, ErrorNote, Icon, KeyValue, visible } from "../../ui";
import type { ShownRun } from "../run/run-context";
import { Section } from "../system/section";
import { approvalOf, runOf, useEntries, type Entry } from "./entries";
import { askedFor, askedText } from "./asked-for";
import { EntryTable } from "./table";
import { Verify } from "./verify";

/** The audit of a run. */
export function AuditTab({ run }: { run: ShownRun }) {
  useLanguage();
  const { can, actor } = useHub();
  const { view } = run.snapshot;
  const may = can("audit.read");
  const { entries, loading, error, readAt, readOn } = useEntries(may);
  const own = useMemo(() => entries.filter((entry) => runOf(entry) === run.id).reverse(), [entries, run.id]);
  const about = (entry: Entry) => {
    const approval = view.approvals.find(({ approvalId }) => approvalId === approvalOf(entry));
    return approval && askedText(approval.request);
  };
  // A decision or an end of this run is soon in the audit as well.
  const marks = view.approvals.filter((approval) => approval.resolution).length + view.steps.length;
  const known = useRef(marks);
  useEffect(() => {
    if (known.current === marks) return;
    known.current = marks;
    const timer = setTimeout(readOn, 600);
    return () => clearTimeout(timer);
  });
  // What came piece by piece would move the rest; what was there stays, with what a check has found.
  const isThere = run.reading === null && actor !== null && (!may || readAt !== null || error !== null);
  const [wasThere, setWasThere] = useState(isThere);
  useEffect(() => {
    if (isThere) setWasThere(true);
  }, [isThere]);
  if (!isThere && !wasThere) {
    return (
      <div className="page scroll">
        <p className="muted" role="status">
          {t("system.reading")}
        </p>
      </div>
    );
  }
  return (
    <div className="page scroll">
      <Section title={t("audit.tab.decisions")} about={t("audit.tab.decisionsAbout")}>
        <Decisions run={run} />
      </Section>
      <Section title={t("audit.tab.entries")} about={t("audit.tab.entriesAbout")}>
        {may ? (
          <>
            {error && <ErrorNote error={error} />}
            {own.length > 0 ? (
              <div className="entries-box">
                <EntryTable entries={own} label={t("audit.tab.entries")} about={about} />
              </div>
            ) : (
              <p className="muted">{t(loading ? "system.reading" : "audit.tab.noEntries")}</p>
            )}
            <Verify onVerified={readOn} />
          </>
        ) : (
          <p className="muted">{t("system.needs", { permission: "audit.read" })}</p>
        )}
      </Section>
      <Section title={t("audit.tab.chain")} about={t("audit.tab.chainAbout")}>
        <Chain run={run} />
      </Section>
      <Section title={t("audit.tab.export")} about={t("audit.tab.exportAbout")}>
        <Command label={t("audit.tab.exportCommand")} command={`runyard audit export ${run.id}`} />
        <Command label={t("audit.tab.verifyCommand")} command={`runyard audit verify ${run.id}.audit.jsonl`} />
        <p className="muted">{t("audit.tab.keyAbout")}</p>
        <Command label={t("audit.tab.keyCommand")} command="runyard audit key" />
      </Section>
    </div>
  );
}

function Decisions({ run }: { run: { id: string; snapshot: RunSnapshot } }) {
  const { approvals } = run.snapshot.view;
  if (approvals.length === 0) {
    return (
      <Empty icon="needs_approval" title={t("audit.tab.noDecisions")}>
        {t("audit.tab.noDecisionsAbout")}
      </Empty>
    );
  }
  return (
    <ul className="changes">
      {approvals.map((approval) => {
        const made = approval.resolution;
        const decision = askedFor(approval.request);
        return (
          <li key={approval.approvalId}>
            <span className={`verdict verdict--${made?.resolution === "approved" ? "ok" : made ? "bad" : "wait"}`}>
              <Icon name={made?.resolution === "approved" ? "completed" : made ? "cancelled" : "needs_approval"} small />
              {made ? (maybe(`audit.resolution.${made.resolution}`) ?? made.resolution) : t("audit.tab.open")}
            </span>
            <span className="grow">
              <span className="row">
                <b className="strong">{decision.what}</b>
                {decision.object !== undefined && <code>{decision.object}</code>}
                <code className="muted">{approval.approvalId}</code>
                <EventLink run={run.id} sequence={made?.sequence ?? approval.sequence} />
              </span>
              <span className="sub">
                {made ? t("audit.tab.by", { actor: visible(made.decidedBy.id) }) : t("audit.tab.asked")}{" "}
                <Clock at={made?.at ?? approval.at} day />
                {made?.reason ? ` · ${visible(made.reason)}` : ""}
              </span>
              <span className="sub">
                {t("audit.tab.digest")} <code>{approval.digest}</code>
              </span>
            </span>
          </li>
        );
      })}
    </ul>
  );
}

function EventLink({ run, sequence }: { run: string; sequence: number }) {
  return (
    <Link to="/runs/$id" params={{ id: run }} hash={`seq=${sequence}`} className="num">
      #{sequence}
    </Link>
  );
}

/** How far the chain of the run's events reaches, as this page read it. */
function Chain({ run }: { run: { id: string; snapshot: RunSnapshot } }) {
  const { view } = run.snapshot;
  const last = view.rows.length > 0 ? view.rows.at(view.rows.length - 1).events.at(-1) : undefined;
  const missing = view.missing.map(({ from, to }) => `#${from}–${to}`).join(", ");
  return (
    <KeyValue
      wide
      pairs={[
        [t("audit.tab.events"), <span key="events" className="num">{view.lastSequence}</span>],
        [t("audit.tab.last"), last && <EventLink key="last" run={run.id} sequence={last.sequence} />],
        [
          t("audit.previous"),
          last?.prevHash && (
            <span className="hash" key="hash">
              <code>{last.prevHash}</code>
              <Copy text={last.prevHash} label={t("audit.copyHash")} />
            </span>
          ),
        ],
        [t("audit.tab.missing"), missing || t("audit.tab.nothingMissing")],
      ]}
    />
  );
}

function Command({ label, command }: { label: string; command: string }) {
  return (
    <div className="command">
      <Block command wrap label={label}>
        {command}
      </Block>
      <CopyButton text={command} label={label} />
    </div>
  );
}
