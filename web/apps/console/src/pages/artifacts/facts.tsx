// What an artifact's kind says about it.
import type { RunSnapshot } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { maybe, t } from "../../i18n";
import { Clock, Copy, Icon, KeyValue, visible } from "../../ui";
import { own } from "../../ui/schema-form/json";
import type { Artifact } from "./view";

/** A word of a closed list, in the reader's language. */
const word = (list: string, value: string): string => maybe(`artifacts.${list}.${value}`) ?? value;

/** The facts of an artifact: what it is, where it comes from, and what was decided about it. */
export function ArtifactFacts({ artifact, run }: { artifact: Artifact; run: { id: string; snapshot: RunSnapshot } }) {
  const text = (...names: string[]): string | undefined => {
    const value = names.reduce<unknown>(own, artifact.facts);
    return typeof value === "string" || typeof value === "number" ? visible(String(value)) : undefined;
  };
  const list = (name: string): string[] => {
    const value = own(artifact.facts, name);
    return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
  };
  const code = (value: string | undefined): ReactNode => value && <code>{value}</code>;
  const width = text("viewport", "width");
  const review = text("privacyReview");
  const build = text("buildStatus");
  const paths = [...list("paths"), ...list("files")];
  return (
    <KeyValue
      wide
      pairs={[
        [t("artifacts.fact.base"), code(text("base"))],
        [t("artifacts.fact.target"), code(text("target"))],
        [t("artifacts.fact.path"), code(text("path"))],
        [t("artifacts.fact.paths"), paths.length > 0 ? <Paths paths={paths} /> : undefined],
        [t("artifacts.fact.readAt"), text("readAt") && <Clock at={text("readAt") ?? ""} day />],
        [t("artifacts.fact.viewport"), width && `${width} × ${text("viewport", "height") ?? "?"}`],
        [t("artifacts.fact.route"), code(text("route") ?? text("sourceRoute"))],
        [t("artifacts.fact.theme"), text("theme")],
        [t("artifacts.fact.language"), text("language")],
        [t("artifacts.fact.privacyReview"), review && <Privacy review={review} />],
        [t("artifacts.fact.buildStatus"), build && word("buildStatus", build)],
        [t("artifacts.fact.lines"), text("lines")],
        [t("artifacts.fact.omitted"), text("omitted") === "0" ? undefined : text("omitted")],
        ...decision(artifact, run),
        [t("artifacts.fact.digest"), artifact.digest && <Digest digest={artifact.digest} />],
        [t("artifacts.fact.by"), artifact.by && visible(artifact.by.id)],
        [t("artifacts.fact.redacted"), artifact.redacted ? t("artifacts.redacted") : undefined],
        [t("artifacts.fact.peopleOnly"), artifact.peopleOnly ? t("artifacts.peopleOnly") : undefined],
      ]}
    />
  );
}

/** What became of a change, and the approval that it hangs on. */
function decision(artifact: Artifact, run: { id: string; snapshot: RunSnapshot }): [string, ReactNode][] {
  if (artifact.kind !== "diff" && artifact.kind !== "patch") return [];
  const review = run.snapshot.view.review;
  const isOwn = artifact.mediaType === undefined;
  const given = own(artifact.facts, "applyStatus");
  const status = isOwn ? review?.status : typeof given === "string" ? given : undefined;
  const approval = isOwn ? review?.approvalId : own(artifact.facts, "approvalId");
  // Only the hub knows what was applied and approved: what an agent gives beside a patch is no more than its word.
  const claim = artifact.by?.kind === "agent" && <span className="chip">{t("artifacts.claimed")}</span>;
  return [
    [
      t("artifacts.fact.applyStatus"),
      status && (
        <>
          {visible(word("applyStatus", status))} {claim}
        </>
      ),
    ],
    [
      t("artifacts.fact.approval"),
      typeof approval === "string" ? (
        <>
          <Link to="/approvals/$id" params={{ id: approval }}>
            <code>{visible(approval)}</code>
          </Link>{" "}
          {claim}
        </>
      ) : (
        t("artifacts.noApproval")
      ),
    ],
    [t("artifacts.fact.commit"), isOwn && review?.commit ? <code>{review.commit}</code> : undefined],
  ];
}

function Paths({ paths }: { paths: string[] }) {
  return (
    <ul className="paths">
      {paths.map((path) => (
        <li key={path}>
          <code>{visible(path)}</code>
        </li>
      ))}
    </ul>
  );
}

function Privacy({ review }: { review: string }) {
  const passed = review === "passed";
  return (
    <span className={`verdict verdict--${passed ? "ok" : review === "failed" ? "bad" : "wait"}`}>
      <Icon name={passed ? "completed" : review === "failed" ? "failed" : "clock"} small />
      {word("privacyReview", review)}
    </span>
  );
}

function Digest({ digest }: { digest: string }) {
  return (
    <span className="hash">
      <code>{digest}</code>
      <Copy text={digest} label={t("artifacts.copyDigest")} />
    </span>
  );
}
