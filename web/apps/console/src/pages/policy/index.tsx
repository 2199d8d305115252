// The policy: the rules that count, a place to add one, and a place to ask how a request would be judged.
import { useData, useHub } from "@runyard/react";
import { useState } from "react";
import { plural, t, useLanguage } from "../../i18n";
import { isRead, Read, Section, UNKNOWN_COUNT } from "../system/section";
import { KeyValue, PageHead, Segmented } from "../../ui";
import { AddRule } from "./add-rule";
import { Rules } from "./rules";
import { TestRequest } from "./test-request";

type Side = "add" | "test";

/** The policy's page. */
export function PolicyPage() {
  useLanguage();
  const policy = useData("policy_show", {});
  const [side, setSide] = useState<Side>("add");
  const { can } = useHub();
  const refusal = can("policy.write") ? undefined : t("system.needs", { permission: "policy.write" });
  const found = policy.data?.policy;
  return (
    <>
      <PageHead
        title={t("policy.title")}
        count={found ? plural(found.rules.length + found.stored.length, "policy.countOne", "policy.count") : UNKNOWN_COUNT}
      />
      <div className="split">
        <div className="page scroll">
          <Section title={t("policy.presetTitle")}>
            <Read reading={policy}>
              {({ policy: { preset, version } }) => (
                <KeyValue
                  wide
                  pairs={[
                    [t("policy.preset"), t(preset === "strict" ? "policy.presetStrict" : "policy.presetDefault")],
                    [t("policy.version"), <span key="version" className="num">{version}</span>],
                    [t("policy.order"), t("policy.orderDeny")],
                  ]}
                />
              )}
            </Read>
          </Section>
          {found && (
            <Section title={t("policy.rulesTitle")} about={t("policy.rulesAbout")}>
              <Rules policy={found} refusal={refusal} onChanged={policy.refresh} />
            </Section>
          )}
        </div>
        {/* On a narrow window it stands below the rules. */}
        {isRead(policy) && (
          <aside className="split__side scroll" aria-label={t(side === "add" ? "policy.add.title" : "policy.test.title")}>
            <Segmented
              label={t("policy.sideLabel")}
              value={side}
              options={[
                { value: "add", label: t("policy.add.title") },
                { value: "test", label: t("policy.test.title") },
              ]}
              onChange={setSide}
            />
            {/* Both stay, so that what was typed into one is there when it is looked at again. */}
            <div hidden={side !== "add"}>
              <AddRule refusal={refusal} onAdded={policy.refresh} />
            </div>
            <div hidden={side !== "test"}>
              <TestRequest />
            </div>
          </aside>
        )}
      </div>
    </>
  );
}
