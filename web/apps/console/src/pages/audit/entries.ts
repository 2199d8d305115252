// The audit's entries: reading them page by page, finding some, and saying what each is about.
import { useClient } from "@runyard/react";
import type { Failing } from "@runyard/react";
import { useCallback, useEffect, useRef, useState } from "react";
import { maybe, t } from "../../i18n";
import { visible } from "../../ui";
import { own } from "../../ui/schema-form/json";
import type { Answer } from "../system/data";

/** One entry of the audit. */
export type Entry = Answer<"audit_list">["entries"][number];

const PAGE_MAX = 499;
/** So many pages are read by themselves; more when somebody asks for them. */
const PAGES_MAX = 8;

/** The entries that were read so far, oldest first. */
export interface Entries {
  entries: readonly Entry[];
  /** Whether there are newer ones that were not read. */
  more: boolean;
  loading: boolean;
  error: Failing | null;
  /** When it was last read up to its end, or as far as is read by itself; null before that. */
  readAt: string | null;
  /** Reads what is new, and what was left out before. */
  readOn: () => void;
}

/** Reads the audit from its beginning, and goes on where it ended when asked to. */
export function useEntries(enabled = true): Entries {
  const client = useClient();
  const [state, setState] = useState<Omit<Entries, "readOn">>({ entries: [], more: false, loading: enabled, error: null, readAt: null });
  const last = useRef(0);
  const busy = useRef(false);
  const readOn = useCallback(async () => {
    if (busy.current) return;
    busy.current = true;
    setState((before) => ({ ...before, loading: true, error: null }));
    let [more, failed] = [true, false];
    for (let page = 0; more && page < PAGES_MAX; page += 1) {
      const envelope = await client.call("audit_list", { after: last.current, limit: PAGE_MAX });
      if (!envelope.ok) {
        setState((before) => ({ ...before, error: envelope.error }));
        failed = true;
        break;
      }
      const { entries, next } = envelope.data;
      last.current = entries.at(-1)?.sequence ?? last.current;
      more = next !== undefined;
      const still = more;
      setState((before) => ({ ...before, entries: [...before.entries, ...entries], more: still }));
    }
    busy.current = false;
    setState((before) => ({ ...before, loading: false, readAt: failed ? before.readAt : new Date().toISOString() }));
  }, [client]);
  useEffect(() => {
    if (enabled) void readOn();
  }, [enabled, readOn]);
  return { ...state, readOn: () => void readOn() };
}

const word = (entry: Entry, name: string): string | undefined => {
  const found = own(entry.what, name);
  return typeof found === "string" || typeof found === "number" ? visible(String(found)) : undefined;
};

/** A word of a closed list in the reader's language; one of a later version stays as it is. */
const listed = (entry: Entry, name: "resolution" | "change"): string | undefined => {
  const given = word(entry, name);
  return given && (maybe(`audit.${name}.${given}`) ?? given);
};

/** Who did it. */
export function actorOf(entry: Entry): { id: string; kind: string } {
  const part = (name: string): string => {
    const found = own(entry.by, name);
    return typeof found === "string" ? found : "";
  };
  return { id: part("id"), kind: part("kind") };
}

/** The run that an entry is about. */
export function runOf(entry: Entry): string | undefined {
  return word(entry, "runId");
}

/** The approval that an entry is about. */
export function approvalOf(entry: Entry): string | undefined {
  return word(entry, "approvalId");
}

/** What kind of thing happened. */
export function typeText(type: string): string {
  return maybe(`audit.types.${type.replaceAll(".", "_")}`) ?? type;
}

/** What was done, in a line. Names and ids are payload and stay as they are; `about` says what an approval was about, where that is known. */
export function whatText(entry: Entry, about?: string): string {
  switch (entry.type) {
    case "audit.login":
      return word(entry, "how") ?? "";
    case "audit.decision":
      return join(listed(entry, "resolution"), about, word(entry, "approvalId"), word(entry, "reason"));
    case "audit.applied":
      return join(about, word(entry, "approvalId"), word(entry, "commit"));
    case "audit.refused": {
      const repeated = word(entry, "repeated");
      return join(word(entry, "action"), repeated && t("audit.repeated", { count: repeated }));
    }
    case "audit.trust":
    case "audit.trust.revoked":
      return word(entry, "path") ?? "";
    case "audit.policy": {
      const rules = own(entry.what, "rules");
      return join(word(entry, "workspace"), Array.isArray(rules) ? visible(rules.map(ruleWords).join(", ")) : undefined);
    }
    case "audit.workspace":
      return join(listed(entry, "change"), word(entry, "label"));
    case "audit.secret": {
      const keys = own(entry.what, "keys");
      return join(word(entry, "profile"), Array.isArray(keys) ? visible(keys.join(", ")) : undefined);
    }
    case "audit.session":
      return word(entry, "sessionId") ?? "";
    case "installation.token.created":
    case "installation.token.revoked":
      return join(word(entry, "name"), word(entry, "role"));
    case "installation.rule.added":
    case "installation.rule.removed":
      return join(visible(ruleWords(own(entry.what, "rule"))), word(entry, "ruleId"));
    case "installation.rule.used":
      return word(entry, "ruleId") ?? "";
    default:
      return "";
  }
}

const ruleWords = (rule: unknown): string =>
  ["effect", "kind", "match"].map((name) => own(rule, name)).filter((part) => typeof part === "string").join(" ");

const join = (...parts: (string | undefined)[]): string => parts.filter(Boolean).join(" · ");

/** What is looked for; nothing is everything. */
export interface Filter {
  type?: string | undefined;
  actor?: string | undefined;
}

/** Those of a type and by an actor, the newest first. */
export function found(entries: readonly Entry[], { type, actor }: Filter): Entry[] {
  const asked = actor?.trim().toLowerCase();
  const fits = (entry: Entry) => (!type || entry.type === type) && (!asked || actorOf(entry).id.toLowerCase().includes(asked));
  return entries.filter(fits).reverse();
}

/** A hash short enough to compare by eye. */
export function shortHash(hash: string): string {
  return hash.length > 16 ? `${hash.slice(0, 8)}…${hash.slice(-8)}` : hash;
}
