// The rules that count, with where each comes from. Stored ones can be removed; those of the configuration are changed there.
import { useAction } from "@runyard/react";
import { useState } from "react";
import { t } from "../../i18n";
import { announce, Block, Button, Clock, effect, Empty, visible } from "../../ui";
import type { Answer } from "../system/data";
import { EffectDialog } from "../system/effect-dialog";
import { EffectMark, kindText, ruleFor, ruleText, type Rule } from "./words";

/** All rules of a policy. */
export function Rules({ policy, refusal, onChanged }: {
  policy: Answer<"policy_show">["policy"];
  refusal: string | undefined;
  onChanged: () => void;
}) {
  const [removing, setRemoving] = useState<Rule | null>(null);
  const rows = [...policy.stored.map((rule) => ({ rule, stored: true })), ...policy.rules.map((rule) => ({ rule, stored: false }))];
  if (rows.length === 0) {
    return (
      <Empty icon="shield" title={t("policy.none")} command="runyard policy add allow shell 'cargo test *'">
        {t("policy.noneAbout")}
      </Empty>
    );
  }
  return (
    <>
      <table className="list list--rules">
        <thead>
          <tr>
            <th scope="col">{t("policy.effectColumn")}</th>
            <th scope="col">{t("policy.about")}</th>
            <th scope="col">{t("policy.speaksFor")}</th>
            <th scope="col">{t("policy.holds")}</th>
            <th scope="col">{t("policy.origin")}</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {rows.map(({ rule, stored }) => (
            <Row key={`${stored}-${rule.id}`} rule={rule} stored={stored} refusal={refusal} onRemove={() => setRemoving(rule)} />
          ))}
        </tbody>
      </table>
      {removing && <RemoveRule rule={removing} onClose={() => setRemoving(null)} onRemoved={onChanged} />}
    </>
  );
}

function Row({ rule, stored, refusal, onRemove }: { rule: Rule; stored: boolean; refusal: string | undefined; onRemove: () => void }) {
  const expired = rule.expires !== undefined && Date.parse(rule.expires) < Date.now();
  return (
    <tr className={expired ? "is-gone" : undefined}>
      <td data-label={t("policy.effectColumn")}>
        <EffectMark effect={rule.effect} />
      </td>
      <th scope="row">
        {kindText(rule.kind)} <code>{rule.match === undefined ? t("policy.all") : visible(rule.match)}</code>
        <span className="sub">{rule.id}</span>
      </th>
      <td data-label={t("policy.speaksFor")}>{ruleFor(rule)}</td>
      <td data-label={t("policy.holds")}>
        {t(`policy.scope.${rule.scope}`)}
        {rule.expires !== undefined && (
          <span className="sub">
            {t(expired ? "policy.expired" : "policy.expires")} <Clock at={rule.expires} day />
          </span>
        )}
      </td>
      <td data-label={t("policy.origin")}>
        <span className="chip chip--line">{t(stored ? "policy.stored" : "policy.file")}</span>
        {rule.addedAt !== undefined && (
          <span className="sub">
            {rule.addedBy?.id} <Clock at={rule.addedAt} day />
          </span>
        )}
      </td>
      <td className="end">
        {stored ? (
          <Button kind="reject" disabledReason={refusal} onClick={onRemove}>
            {t("policy.effect.removeAsk")}
          </Button>
        ) : (
          <span className="muted t12">{t("policy.changedThere")}</span>
        )}
      </td>
    </tr>
  );
}

function RemoveRule({ rule, onClose, onRemoved }: { rule: Rule; onClose: () => void; onRemoved: () => void }) {
  const remove = useAction("policy_remove", { outlives: true });
  const run = async () => {
    const envelope = await remove.invoke({ id: rule.id });
    if (!envelope?.ok) return;
    announce(t("policy.removed", { rule: ruleText(rule) }));
    onRemoved();
    onClose();
  };
  return (
    <EffectDialog
      title={t("policy.removeTitle")}
      label={effect("policy.effect.remove", {}, ruleText(rule))}
      danger={rule.effect === "deny"}
      {...(rule.effect === "deny" && { typed: rule.id })}
      keep={t("policy.keep")}
      pending={remove.status === "running"}
      error={remove.error}
      onEffect={() => void run()}
      onClose={onClose}
    >
      <Block wrap label={t("policy.rule")}>
        {ruleText(rule)}
      </Block>
      <p>{t(rule.effect === "deny" ? "policy.removeDenies" : "policy.removeMeans")}</p>
      <p className="muted">{ruleFor(rule)}</p>
    </EffectDialog>
  );
}
