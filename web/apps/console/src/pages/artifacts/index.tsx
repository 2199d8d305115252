// What a run produced to be looked at. Looking accepts nothing and changes no file.
import { useClient, useData, type RunSnapshot } from "@runyard/react";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { maybe, t, useLanguage } from "../../i18n";
import { useRunTab } from "../../app/run-tab";
import { bytesText, Button, Clock, Empty, Icon, LinkButton, visible, type IconName } from "../../ui";
import { Read } from "../system/section";
import { ArtifactContent } from "./content";
import { ArtifactFacts } from "./facts";
import { isChange, type Artifact } from "./view";

type Run = { id: string; snapshot: RunSnapshot };

const ICONS: Record<string, IconName> = { diff: "patch", patch: "patch", screenshot: "eye", generated_docs: "file", debug: "terminal" };

/** The artifacts of a run: a list, and the one that is looked at. */
export function ArtifactsTab({ run }: { run: Run }) {
  useLanguage();
  const { artifact: asked } = useRunTab();
  const listed = useData("artifact_list", { id: run.id });
  const { view } = run.snapshot;
  // What the run says is there is read again; the list itself is the hub's.
  const marks = `${view.artifacts.length} ${view.review?.sequence ?? 0} ${view.review?.status ?? ""}`;
  const { refresh } = listed;
  useEffect(() => void refresh(), [marks, refresh]);
  return (
    <Read reading={listed}>
      {({ artifacts }) => {
        const chosen = artifacts.find((artifact) => artifact.id === asked) ?? (asked === undefined ? artifacts[0] : undefined);
        if (artifacts.length === 0) return <Nothing run={run} />;
        return (
          <div className="artifacts">
            <nav className="artifacts__list scroll" aria-label={t("artifacts.list")}>
              <ul>
                {artifacts.map((artifact) => (
                  <Entry key={artifact.id} run={run} artifact={artifact} chosen={artifact === chosen} />
                ))}
              </ul>
              <p className="artifacts__note">
                <Icon name="eye" small /> {t("artifacts.reviewOnly")}
              </p>
            </nav>
            {chosen ? <Viewer key={chosen.id} run={run} artifact={chosen} /> : <Unknown run={run} asked={asked ?? ""} />}
          </div>
        );
      }}
    </Read>
  );
}

function Nothing({ run }: { run: Run }) {
  return (
    <div className="page">
      <Empty icon="file" title={t("artifacts.none")} command={`runyard artifacts add ${run.id} report.md`}>
        {t("artifacts.noneAbout")}
      </Empty>
    </div>
  );
}

function Unknown({ run, asked }: { run: Run; asked: string }) {
  return (
    <div className="page">
      <Empty
        icon="question"
        title={t("artifacts.unknown")}
        action={<LinkButton to="/runs/$id/artifacts" params={{ id: run.id }}>{t("artifacts.showAll")}</LinkButton>}
      >
        {t("artifacts.unknownAbout", { id: visible(asked) })}
      </Empty>
    </div>
  );
}

/** The event that recorded it. */
function sequenceOf(run: Run, artifact: Artifact): number | undefined {
  const { artifacts, review } = run.snapshot.view;
  return artifacts.find((each) => each.artifactId === artifact.id)?.sequence ?? (isChange(artifact) ? review?.sequence : undefined);
}

function Entry({ run, artifact, chosen }: { run: Run; artifact: Artifact; chosen: boolean }) {
  const sequence = sequenceOf(run, artifact);
  return (
    <li>
      <Link
        className={`artifact${chosen ? " is-sel" : ""}`}
        to="/runs/$id/artifacts/$artifact"
        params={{ id: run.id, artifact: artifact.id }}
        aria-current={chosen ? "true" : undefined}
      >
        <Icon name={ICONS[artifact.kind] ?? "file"} />
        <span className="artifact__name trunc">{visible(artifact.name ?? artifact.summary)}</span>
        <span className="num muted">{artifact.bytes === undefined ? "" : bytesText(artifact.bytes)}</span>
        <span className="sub trunc">
          {maybe(`artifacts.kind.${artifact.kind}`) ?? artifact.kind}
          {artifact.digest !== undefined && (
            <>
              {" · "}
              <code>{artifact.digest.replace(/^sha256:/, "").slice(0, 8)}</code>
            </>
          )}
          {artifact.recordedAt !== undefined && (
            <>
              {" · "}
              <Clock at={artifact.recordedAt} day />
            </>
          )}
        </span>
        <span className="num muted t12">{sequence === undefined ? "" : `#${sequence}`}</span>
      </Link>
    </li>
  );
}

function Viewer({ run, artifact }: { run: Run; artifact: Artifact }) {
  const sequence = sequenceOf(run, artifact);
  return (
    <section className="viewer" aria-label={artifact.summary}>
      <header className="viewer__head">
        <h2 className="trunc">{visible(artifact.name ?? artifact.summary)}</h2>
        <span className="chip">{maybe(`artifacts.kind.${artifact.kind}`) ?? artifact.kind}</span>
        <span className="grow" />
        {sequence !== undefined && (
          <Link to="/runs/$id" params={{ id: run.id }} hash={`seq=${sequence}`} className="num t12">
            {t("artifacts.event", { sequence })}
          </Link>
        )}
        {!isChange(artifact) && <Download run={run.id} artifact={artifact} />}
      </header>
      <div className="viewer__facts">
        {artifact.name !== undefined && artifact.summary !== artifact.name && <p>{visible(artifact.summary)}</p>}
        <ArtifactFacts artifact={artifact} run={run} />
      </div>
      {isChange(artifact) ? <OwnChange run={run} /> : <ArtifactContent run={run.id} artifact={artifact} />}
    </section>
  );
}

function OwnChange({ run }: { run: Run }) {
  return (
    <div className="viewer__wait">
      <p className="muted">{t("artifacts.ownChange")}</p>
      <LinkButton kind="review" icon="eye" to="/runs/$id/diff" params={{ id: run.id }}>
        {t("artifacts.openDiff")} <span className="ro">{t("policy.add.readOnly")}</span>
      </LinkButton>
    </div>
  );
}

/** Saves the content as a file. The browser is given bytes and no type that it would act on. */
function Download({ run, artifact }: { run: string; artifact: Artifact }) {
  const client = useClient();
  const [state, setState] = useState<"idle" | "pending" | "failed">("idle");
  const save = async () => {
    setState("pending");
    try {
      const content = await client.download(run, artifact.id);
      const address = URL.createObjectURL(new Blob([content], { type: "application/octet-stream" }));
      const link = document.createElement("a");
      link.href = address;
      link.download = artifact.name ?? artifact.id;
      link.click();
      // The browser has begun to save it by then.
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
      setState("idle");
    } catch {
      setState("failed");
    }
  };
  return (
    <>
      {state === "failed" && <span className="muted t12" role="alert">{t("artifacts.notRead")}</span>}
      <Button icon="applying" pending={state === "pending"} onClick={() => void save()}>
        {t("artifacts.download")}
      </Button>
    </>
  );
}
