// What a rule would change, before it is stored: what agents asked for lately, and what they may well ask for.
import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { Clock, Icon, visible } from "../../ui";
import { EffectMark, kindText, type EffectWord, type Preview } from "./words";

/** The change that a rule would make. */
export function RulePreview({ preview }: { preview: Preview }) {
  return (
    <div className="preview">
      <p className="muted">
        {t("policy.preview.looked", { requests: preview.requests, runs: preview.runs })} {preview.more && t("policy.preview.more")}
      </p>
      <h4>{t("policy.preview.changed", { count: preview.changed.length + preview.notShown })}</h4>
      {preview.changed.length > 0 && (
        <ul className="changes">
          {preview.changed.map((change) => (
            <li key={`${change.kind} ${change.what}`}>
              <Change before={change.before} after={change.after} />
              <span className="grow">
                <code>{visible(change.what)}</code>
                <span className="sub">
                  {kindText(change.kind)} · {t("policy.preview.times", { count: change.times })}
                  {change.decided && ` · ${t("policy.preview.decided", { decided: change.decided })}`} ·{" "}
                  <Link to="/runs/$id" params={{ id: change.runId }}>
                    {change.runId}
                  </Link>{" "}
                  <Clock at={change.at} day />
                </span>
              </span>
            </li>
          ))}
        </ul>
      )}
      {preview.notShown > 0 && <p className="muted">{t("policy.preview.notShown", { count: preview.notShown })}</p>}
      <h4>{t("policy.preview.also", { count: preview.also.length })}</h4>
      {preview.also.length > 0 && (
        <ul className="changes">
          {preview.also.map((change) => (
            <li key={change.what}>
              <Change before={change.before} after={change.after} />
              <code className="grow">{visible(change.what)}</code>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Change({ before, after }: { before: EffectWord; after: EffectWord }) {
  return (
    <span className="change">
      <EffectMark effect={before} />
      <Icon name="chev" small />
      <span className="sr">{t("policy.preview.becomes")}</span>
      <EffectMark effect={after} />
    </span>
  );
}
