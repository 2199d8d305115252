// A part of a page with its name, and what stands in it while nothing is known.
import type { Failing } from "@runyard/react";
import { useId, type ReactNode } from "react";
import { t, useLanguage } from "../../i18n";
import { Button, ErrorNote } from "../../ui";

/** What a read gives, as far as a page needs it. */
export interface Reading<T> {
  data: T | null | undefined;
  error: Failing | null | undefined;
  loading: boolean;
  refresh: () => void;
}

/** Keeps the line of a count that is not known yet: on a narrow window it is a line of its own. */
export const UNKNOWN_COUNT = "\u00a0";

/** A named part of a page. */
export function Section({ title, about, end, children }: { title: string; about?: ReactNode; end?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="part" aria-labelledby={id}>
      <div className="part__head">
        <h2 id={id}>{title}</h2>
        {end}
      </div>
      {about && <p className="part__about">{about}</p>}
      {children}
    </section>
  );
}

/** Whether all of it was read, or cannot be: what stands below comes only then, so that nothing moves it. */
export function isRead(...readings: readonly Pick<Reading<unknown>, "data" | "error">[]): boolean {
  return readings.every(({ data, error }) => (data ?? error ?? null) !== null);
}

/** Shows what was read; before that, that it is being read, or why it was not. What was read once stays while it is read again. */
export function Read<T>({ reading, children }: { reading: Reading<T>; children: (data: T) => ReactNode }) {
  useLanguage();
  const { data, error, refresh } = reading;
  return (
    <>
      {error && <ErrorNote error={error} action={<Button icon="retry" onClick={refresh}>{t("system.readAgain")}</Button>} />}
      {data !== null && data !== undefined ? children(data) : !error && <Waiting />}
    </>
  );
}

/** Stands where something will that is not known yet. */
export function Waiting() {
  return (
    <div className="part__waiting" role="status">
      {t("system.reading")}
    </div>
  );
}

/** Words side by side, as they are. */
export function Chips({ words }: { words: readonly string[] }) {
  return (
    <span className="chips">
      {words.map((word) => (
        <span key={word} className="chip">
          {word}
        </span>
      ))}
    </span>
  );
}
