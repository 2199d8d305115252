// An address that leads nowhere.
import { useRouterState } from "@tanstack/react-router";
import { t, useLanguage } from "../i18n";
import { Empty, LinkButton, PageHead } from "../ui";
import { boot } from "./boot";

/** Says that there is nothing here and where the rest is. */
export function NotFound() {
  useLanguage();
  const path = useRouterState({ select: (state) => state.location.pathname });
  return (
    <>
      <PageHead title={t("common.notFound.title")} />
      <div className="center">
        <Empty
          icon="question"
          title={t("common.notFound.heading")}
          action={
            <LinkButton kind="ink" to={boot().hub ? "/runs" : "/dev"}>
              {boot().hub ? t("common.notFound.toRuns") : t("common.notFound.toDev")}
            </LinkButton>
          }
        >
          <p>
            {t("common.notFound.text")} <code>{path}</code>
          </p>
        </Empty>
      </div>
    </>
  );
}
