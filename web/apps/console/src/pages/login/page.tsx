// Logging in with a link that works once. The code is in the fragment: it never reaches a log of the server.
import { useRouter, useSearch } from "@tanstack/react-router";
import { useClient } from "@runyard/react";
import { useEffect, useState, type FormEvent } from "react";
import { Brand } from "../../app/brand";
import { setLanguage, t, useLanguage } from "../../i18n";
import { Block, Button, CopyButton, ErrorNote, PageTitle, TextField, type Problem } from "../../ui";
import { codeOf, ownPath } from "./code";

type Client = ReturnType<typeof useClient>;
/** A code works once: what a page asked for twice is asked once. */
const asked = new Map<string, ReturnType<Client["logIn"]>>();

function logIn(client: Client, code: string): ReturnType<Client["logIn"]> {
  let answer = asked.get(code);
  if (!answer) asked.set(code, (answer = client.logIn(code)));
  return answer;
}

/** The page behind the link that the command line prints. */
export function LoginPage() {
  const language = useLanguage();
  const { next } = useSearch({ strict: false });
  const router = useRouter();
  return (
    <main className="login" id="main">
      <div className="login__box">
        <Brand />
        <LoginForm onDone={() => void router.navigate({ href: ownPath(next), replace: true })} />
        <Button kind="ghost" lang={language === "zh" ? "en" : "zh-CN"} onClick={() => void setLanguage(language === "zh" ? "en" : "zh")}>
          {t(language === "zh" ? "common.language.en" : "common.language.zh")}
        </Button>
      </div>
    </main>
  );
}

/** The same inside the frame, where somebody came without a session. */
export function LoginPanel() {
  useLanguage();
  return (
    <div className="login login--inside">
      <div className="login__box">
        <LoginForm onDone={() => undefined} />
      </div>
    </div>
  );
}

/** How to log in, and a field for the link or its code. `again` is for somebody whose session ended: the page stays where it is. */
export function LoginForm({ onDone, again = false }: { onDone: () => void; again?: boolean }) {
  useLanguage();
  const client = useClient();
  // The page that is open waits for the link; a browser that the command opened would be another one.
  const command = again ? "runyard open --print" : "runyard open";
  const [code] = useState(takeCode);
  const [typed, setTyped] = useState("");
  const [error, setError] = useState<Problem | null>(null);
  const [wrong, setWrong] = useState(false);
  const [sending, setSending] = useState(code !== undefined);

  async function send(given: string): Promise<void> {
    setSending(true);
    const answer = await logIn(client, given);
    setSending(false);
    if (!answer.ok) return setError(answer.error);
    onDone();
  }
  useEffect(() => {
    if (code !== undefined) void send(code);
    // A link that is opened where this page is already changes the fragment alone.
    const another = (): void => {
      const given = takeCode();
      if (given === undefined) return;
      setError(null);
      void send(given);
    };
    addEventListener("hashchange", another);
    return () => removeEventListener("hashchange", another);
    // Once, with the code that the page came with.
  }, []);

  const used = error?.code === "AUTHENTICATION_ERROR";
  function submit(event: FormEvent): void {
    event.preventDefault();
    const given = codeOf(typed);
    setWrong(given === undefined);
    setError(null);
    if (given !== undefined && !sending) void send(given);
  }

  // A link that brought its code logs in by itself; what was typed stays in its field until it is known whether it worked.
  if (sending && typed === "") {
    return (
      <p role="status" className="muted">
        {t("login.sending")}
      </p>
    );
  }
  return (
    <>
      {!again && <PageTitle>{t("login.title")}</PageTitle>}
      {error && !used && <ErrorNote error={{ ...error, message: t("login.failed", { message: error.message }) }} />}
      {!again && <p>{t("login.text")}</p>}
      <div className="login__command">
        <Block command label={t("common.command")}>
          {command}
        </Block>
        <CopyButton text={command} label={t("common.copyCommand")} />
      </div>
      <form onSubmit={submit} noValidate>
        <TextField
          mono
          label={t("login.paste")}
          help={again ? undefined : t("login.pasteHelp")}
          problem={wrong ? t("login.notACode") : used ? t("login.used", { command }) : undefined}
          value={typed}
          autoComplete="off"
          onChange={setTyped}
        />
        <Button kind="ink" type="submit" pending={sending}>
          {t("login.logIn")}
        </Button>
      </form>
    </>
  );
}

/** Takes the code out of the address at once, so that it is neither bookmarked nor looked at. */
function takeCode(): string | undefined {
  const code = codeOf(location.hash.slice(1));
  if (code !== undefined) history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}
