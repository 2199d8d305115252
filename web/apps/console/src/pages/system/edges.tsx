// Edges, the workspaces that runs may work on, and the sessions whose conversations agents still keep.
import { t, useLanguage } from "../../i18n";
import { Empty, Icon, KeyValue, PageHead } from "../../ui";
import { useEdges, useSessions, useWorkspaces, type Edge } from "./data";
import { isRead, Read, Section } from "./section";
import { Sessions } from "./sessions";
import { Workspaces } from "./workspaces";

/** The page of edges, workspaces and sessions. */
export function EdgesPage() {
  useLanguage();
  const edges = useEdges();
  const workspaces = useWorkspaces();
  const sessions = useSessions();
  return (
    <>
      <PageHead title={t("system.edges.title")} />
      <div className="page scroll">
        <Section title={t("system.edges.list")} about={t("system.edges.about")}>
          <Read reading={edges}>
            {({ edges: found }) =>
              found.length === 0 ? (
                <Empty icon="edge" title={t("system.edges.none")} command="runyard up">
                  {t("system.edges.noneAbout")}
                </Empty>
              ) : (
                <div className="panels">
                  {found.map((edge) => (
                    <EdgePanel key={edge.id} edge={edge} />
                  ))}
                </div>
              )
            }
          </Read>
        </Section>
        {isRead(edges) && <Workspaces workspaces={workspaces} />}
        {isRead(edges, workspaces) && <Sessions sessions={sessions} />}
      </div>
    </>
  );
}

function EdgePanel({ edge }: { edge: Edge }) {
  return (
    <article className="panel" aria-label={edge.id}>
      <h3 className="panel__head">
        <Icon name="edge" />
        <span className="grow">{edge.id}</span>
        <span className={`verdict ${edge.connected ? "verdict--ok" : "verdict--bad"}`}>
          <Icon name={edge.connected ? "completed" : "cancelled"} small />
          {t(edge.connected ? "system.edges.connected" : "system.edges.gone")}
        </span>
      </h3>
      <div className="pad">
        <KeyValue
          wide
          pairs={[
            [t("system.edges.version"), <code key="version">{edge.version}</code>],
            [t("system.edges.sandbox"), edge.sandbox],
            [t("system.edges.active"), <span key="active" className="num">{edge.activeRuns}</span>],
          ]}
        />
        {!edge.connected && <p className="muted">{t("system.edges.goneAbout")}</p>}
      </div>
    </article>
  );
}
