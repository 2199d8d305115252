// What somebody can set for this browser.
import { useClient, useHub } from "@runyard/react";
import { useState } from "react";
import { setLanguage, t, useLanguage, type Language } from "../i18n";
import { Button, Checkbox, KeyValue, PageHead, Segmented } from "../ui";
import { boot } from "./boot";
import { forget } from "./forget";
import { overlay } from "./overlay";
import { prefer, usePreference } from "./preferences";
import { setTheme, useTheme, type Theme } from "./theme";

/** The settings. */
export function SettingsPage() {
  useLanguage();
  return (
    <>
      <PageHead title={t("common.settings.title")} count={t("common.settings.stored")} />
      <div className="settings scroll">
        <Appearance />
        <Notifications />
        <Keyboard />
        <About />
      </div>
    </>
  );
}

function Appearance() {
  const language = useLanguage();
  const theme = useTheme();
  return (
    <section className="setting">
      <h2>{t("common.settings.appearance")}</h2>
      <div className="setting__row">
        <span>{t("common.theme.name")}</span>
        <Segmented<Theme>
          label={t("common.theme.name")}
          value={theme}
          onChange={setTheme}
          options={(["system", "light", "dark", "contrast"] as const).map((value) => ({ value, label: t(`common.theme.${value}`) }))}
        />
      </div>
      <div className="setting__row">
        <span>{t("common.language.name")}</span>
        <Segmented<Language>
          label={t("common.language.name")}
          value={language}
          onChange={(next) => void setLanguage(next)}
          options={(["en", "zh"] as const).map((value) => ({ value, label: t(`common.language.${value}`) }))}
        />
      </div>
    </section>
  );
}

function Notifications() {
  const wanted = usePreference("notify");
  const supported = typeof Notification !== "undefined";
  const [permission, setPermission] = useState(supported ? Notification.permission : "denied");

  async function change(on: boolean): Promise<void> {
    if (!on) return prefer("notify", false);
    const answer = await Notification.requestPermission();
    setPermission(answer);
    prefer("notify", answer === "granted");
  }

  return (
    <section className="setting">
      <h2>{t("common.settings.notifications")}</h2>
      <Checkbox
        checked={wanted && permission === "granted"}
        onChange={(on) => void change(on)}
        label={t("common.settings.notify")}
        {...(!supported && { disabledReason: t("common.settings.notifyUnsupported") })}
      />
      <p className="muted">{t("common.settings.notifyHelp")}</p>
      {supported && permission === "denied" && <p className="warn">{t("common.settings.notifyDenied")}</p>}
    </section>
  );
}

function Keyboard() {
  const keys = usePreference("keys");
  return (
    <section className="setting">
      <h2>{t("common.settings.keyboard")}</h2>
      <Checkbox checked={keys} onChange={(on) => prefer("keys", on)} label={t("common.settings.keys")} />
      <p className="muted">{t("common.settings.keysHelp")}</p>
      <Button onClick={() => overlay("keys")}>{t("common.settings.showKeys")}</Button>
    </section>
  );
}

function About() {
  const { actor, permissions } = useHub();
  const client = useClient();
  const given = permissions.includes("*") ? t("common.settings.allPermissions") : permissions.join(", ");
  return (
    <section className="setting">
      <h2>{t("common.settings.about")}</h2>
      <KeyValue
        wide
        pairs={[
          [t("common.settings.version"), boot().version || undefined],
          [t("common.settings.instance"), boot().instance ? <code>{boot().instance}</code> : undefined],
          [t("common.settings.actor"), actor?.id],
          [t("common.settings.permissions"), actor ? given : undefined],
        ]}
      />
      {actor && (
        <Button
          onClick={() => {
            void client.logOut().then(() => {
              forget(localStorage, sessionStorage);
              location.assign("/login");
            });
          }}
        >
          {t("common.settings.logOut")}
        </Button>
      )}
    </section>
  );
}
