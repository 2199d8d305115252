// What an artifact holds: read once, shown as far as that is safe, and never run.
import { useClient } from "@runyard/react";
import { useEffect, useMemo, useState } from "react";
import { t, useLanguage } from "../../i18n";
import { bytesText, Button, Empty, Segmented } from "../../ui";
import { Markdown } from "../../ui/markdown";
import { Lines } from "./lines";
import { bounded, isShown, shownAs, type Artifact, type Shown } from "./view";

type Content = { state: "reading" } | { state: "failed"; message: string } | { state: "read"; bytes: ArrayBuffer };

function useContent(run: string, artifact: Artifact): { content: Content; again: () => void } {
  const client = useClient();
  const [content, setContent] = useState<Content>({ state: "reading" });
  const [attempt, setAttempt] = useState(0);
  const wanted = isShown(artifact);
  useEffect(() => {
    if (!wanted) return;
    let gone = false;
    setContent({ state: "reading" });
    const read = async () => (await client.download(run, artifact.id)).arrayBuffer();
    read().then(
      (bytes) => gone || setContent({ state: "read", bytes }),
      (error: unknown) => gone || setContent({ state: "failed", message: error instanceof Error ? error.message : String(error) }),
    );
    return () => {
      gone = true;
    };
  }, [client, run, artifact.id, artifact.digest, wanted, attempt]);
  return { content, again: () => setAttempt((before) => before + 1) };
}

/** The content of an artifact, or why it is not shown. */
export function ArtifactContent({ run, artifact }: { run: string; artifact: Artifact }) {
  useLanguage();
  const { content, again } = useContent(run, artifact);
  if (!isShown(artifact)) return <Binary artifact={artifact} />;
  if (content.state === "reading") return <p className="viewer__wait muted" role="status">{t("system.reading")}</p>;
  if (content.state === "failed") {
    return (
      <Empty
        icon="failed"
        title={t("artifacts.notRead")}
        action={<Button icon="retry" onClick={again}>{t("system.readAgain")}</Button>}
      >
        {content.message}
      </Empty>
    );
  }
  return <ShownContent artifact={artifact} bytes={content.bytes} />;
}

function ShownContent({ artifact, bytes }: { artifact: Artifact; bytes: ArrayBuffer }) {
  const shown = useMemo(() => shownAs(artifact, bytes), [artifact, bytes]);
  const title = artifact.name ?? artifact.summary;
  switch (shown.kind) {
    case "picture":
      return <Picture bytes={bytes} type={shown.type} alt={artifact.summary} />;
    case "binary":
      return <Binary artifact={artifact} />;
    case "json":
    case "lines":
      return <Lines text={shown.text} label={title} />;
    case "markdown":
    case "html":
      return <Page shown={shown} title={title} />;
  }
}

function Binary({ artifact }: { artifact: Artifact }) {
  const size = artifact.bytes === undefined ? "" : bytesText(artifact.bytes);
  return (
    <Empty icon="file" title={t("artifacts.notShown")}>
      {t("artifacts.notShownAbout", { type: artifact.mediaType ?? "?", size })}
    </Empty>
  );
}

/** An address for bytes, as long as they are shown. */
function useAddress(bytes: BlobPart, type: string): string | null {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([bytes], { type }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [bytes, type]);
  return address;
}

function Picture({ bytes, type, alt }: { bytes: ArrayBuffer; type: string; alt: string }) {
  const address = useAddress(bytes, type);
  return (
    <div className="viewer__picture scroll" tabIndex={0} role="group" aria-label={alt}>
      {address && <img src={address} alt={alt} />}
    </div>
  );
}

/** Something written to be read: as it is meant, or its source. */
function Page({ shown, title }: { shown: Extract<Shown, { text: string }>; title: string }) {
  const [as, setAs] = useState<"page" | "source">("page");
  return (
    <>
      <div className="viewer__bar">
        <Segmented
          label={t("artifacts.showAs")}
          value={as}
          options={[
            { value: "page", label: t("artifacts.asPage") },
            { value: "source", label: t("artifacts.asSource") },
          ]}
          onChange={setAs}
        />
        {shown.kind === "html" && as === "page" && <span className="muted t12">{t("artifacts.htmlBound")}</span>}
      </div>
      {as === "source" ? (
        <Lines text={shown.text} label={title} />
      ) : shown.kind === "html" ? (
        <Frame text={shown.text} title={title} />
      ) : (
        <div className="viewer__page scroll" tabIndex={0} role="group" aria-label={title}>
          <Markdown text={shown.text} />
        </div>
      )}
    </>
  );
}

/** A page of its own without any rights: no script, no form, no address of ours. */
function Frame({ text, title }: { text: string; title: string }) {
  const address = useAddress(useMemo(() => bounded(text), [text]), "text/html;charset=utf-8");
  return address ? <iframe className="viewer__frame" sandbox="" src={address} title={title} referrerPolicy="no-referrer" /> : null;
}
