// Rules and effects in words. What was asked for and what matches are payload, and stay as they are.
import { maybe, t } from "../../i18n";
import { Icon, visible, type IconName } from "../../ui";
import type { Answer } from "../system/data";

/** A rule. */
export type Rule = Answer<"policy_show">["policy"]["stored"][number];
/** What a rule does. */
export type EffectWord = Rule["effect"];
/** What a rule would change. */
export type Preview = NonNullable<Answer<"policy_add">["preview"]>;

export const EFFECTS = ["allow", "ask", "deny"] as const satisfies readonly EffectWord[];
export const KINDS = [
  "shell", "read", "write", "patch", "network", "git_commit", "git_push", "publish", "deploy", "secret", "action", "any",
] as const satisfies readonly Rule["kind"][];
export const SCOPES = ["always", "project", "session", "run", "once"] as const satisfies readonly Rule["scope"][];

const ICONS: Record<EffectWord, IconName> = { allow: "check", ask: "needs_approval", deny: "lock" };

/** What becomes of something, by icon and word. */
export function EffectMark({ effect }: { effect: EffectWord }) {
  return (
    <span className={`mark mark--${effect}`} data-effect={effect}>
      <Icon name={ICONS[effect]} small />
      {t(`policy.word.${effect}`)}
    </span>
  );
}

/** What it is about. */
export function kindText(kind: string): string {
  return maybe(`policy.kind.${kind}`) ?? kind;
}

/** A rule in a line, as the command line writes it: `allow shell cargo test *`. */
export function ruleText(rule: Pick<Rule, "effect" | "kind"> & { match?: string | null }): string {
  return visible([rule.effect, rule.kind, rule.match].filter(Boolean).join(" "));
}

/** For whom a rule speaks: agent, workspace, run or session. */
export function ruleFor(rule: Rule): string {
  const parts = [
    rule.agent && t("policy.forAgent", { agent: rule.agent }),
    rule.workspace && t("policy.forWorkspace", { workspace: rule.workspace }),
    rule.run && t("policy.forRun", { run: rule.run }),
    rule.session && t("policy.forSession", { session: rule.session }),
  ].filter(Boolean);
  return parts.length ? parts.join(" · ") : t("policy.forAll");
}

/** A sentence of the hub in which what stands between backticks is code. */
export function Ticked({ text }: { text: string }) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{visible(part)}</code> : visible(part)));
}
