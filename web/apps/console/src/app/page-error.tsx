// What stands in place of a page that broke. The frame around it keeps working.
import { useRouter, type ErrorComponentProps } from "@tanstack/react-router";
import { t, useLanguage } from "../i18n";
import { Button, FailureCard, PageHead } from "../ui";

/** The code of an error of this page itself. */
export const PAGE_ERROR = "PAGE_ERROR";

/** A part of the page whose file could not be loaded: usually the hub was updated meanwhile. */
function isMissingPart(error: Error): boolean {
  return /dynamically imported module|Importing a module script failed|error loading/i.test(error.message);
}

/** The failed page, with its code, what to do, and its diagnostics. */
export function PageError({ error: thrown, reset }: ErrorComponentProps) {
  useLanguage();
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  const router = useRouter();
  const code = isMissingPart(error) ? "PAGE_OUTDATED" : PAGE_ERROR;
  return (
    <>
      <PageHead title={t("common.pageError")} />
      <div className="center">
        <FailureCard
          code={code}
          message={error.message}
          facts={{ name: error.name, stack: error.stack }}
          actions={
            <>
              <Button kind="ink" icon="retry" onClick={() => location.reload()}>
                {t("common.reloadPage")}
              </Button>
              {code === PAGE_ERROR && (
                <Button
                  onClick={() => {
                    reset();
                    void router.invalidate();
                  }}
                >
                  {t("common.drawAgain")}
                </Button>
              )}
            </>
          }
        />
      </div>
    </>
  );
}
