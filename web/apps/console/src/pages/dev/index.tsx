// The dev page: every action that may be called here, with a form, a call and its envelope. It works for an application without a hub.
import { createClient, RunyardProvider, useActions, useHub, type AnyActions } from "@runyard/react";
import { useParams } from "@tanstack/react-router";
import { useEffect } from "react";
import { t, useLanguage } from "../../i18n";
import { boot } from "../../app/boot";
import { Empty, ErrorNote, PageHead, visible } from "../../ui";
import { own } from "../../ui/schema-form/json";
import { ActionList } from "./list";
import { ActionPanel } from "./panel";

/** One for the page: calls say that they come from here. */
let client: ReturnType<typeof createClient<AnyActions>> | undefined;

/** The dev page. */
export function DevPage() {
  client ??= createClient<AnyActions>({ surface: "dev" });
  const { actor, retry } = useHub();
  return (
    <RunyardProvider client={client}>
      <Actions actor={actor?.id} onLoggedOut={retry} />
    </RunyardProvider>
  );
}

/** `onLoggedOut` makes the page look whether there is a session; after a login the actions are read again. */
function Actions({ actor, onLoggedOut }: { actor: string | undefined; onLoggedOut: () => void }) {
  useLanguage();
  const { data, error, refresh } = useActions();
  const loggedOut = error?.code === "AUTHENTICATION_ERROR";
  useEffect(() => {
    if (loggedOut) onLoggedOut();
  }, [loggedOut, onLoggedOut]);
  useEffect(() => {
    if (actor !== undefined && loggedOut) void refresh();
  }, [actor, loggedOut, refresh]);
  const { action: asked } = useParams({ strict: false });
  if (!data) {
    return (
      <>
        <PageHead title={t("dev.title")} />
        <div
          className="page">{error ? <ErrorNote error={error} /> : <p className="muted" role="status">{t("system.reading")}</p>}</div
        >
      </>
    );
  }
  const name = own(own(data, "app"), "name");
  const application = typeof name === "string" ? name : boot().name;
  const action = data.actions.find((each) => each.name === asked);
  return (
    <div className={`dev${asked === undefined ? "" : " dev--chosen"}`}>
      <ActionList actions={data.actions} chosen={asked} />
      <div className="devmain scroll">
        {action ? (
          <ActionPanel key={action.name} action={action} application={application} onLoggedOut={onLoggedOut} />
        ) : (
          <>
            <PageHead title={t("dev.title")} count={visible(application)} />
            <div className="page">
              <Empty
                icon="dev"
                title={asked === undefined ? t("dev.choose") : t("dev.unknown", { name: visible(asked) })}
                command={`${application} actions`}
              >
                {t("dev.about")}
              </Empty>
            </div>
          </>
        )}
      </div>
    </div>
  );
}
