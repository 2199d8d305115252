// What was asked and decided. Who, when and why stay for ever.
import { spanText } from "../../../../ui";
import { Link } from "@tanstack/react-router";
import { t } from "../../../../i18n";
import { told } from "../../../../i18n/known";
import { approvalName, askText, whoText } from "../../words";
import type { ContentProps } from "./index";

/** An approval, with its decision once there is one. */
export function ApprovalRow({ row }: ContentProps<"approval">) {
  const { request, approvalId } = row.approval;
  const resolution = row.asked ? null : row.approval.resolution;
  const ask = askText(request, resolution?.selection);
  const waited = resolution === null ? 0 : Date.parse(resolution.at) - Date.parse(row.approval.at);
  return (
    <div>
      <div className="line">
        <span className="kind">{approvalName(resolution?.resolution)}</span>
        <span className="trunc">
          {ask.text} {ask.object !== undefined && <code>{ask.object}</code>}
        </span>
      </div>
      {resolution !== null && (
        <div className="t12 muted">
          {t("run.decided", { who: whoText(resolution.decidedBy), time: spanText(waited) })} ·{" "}
          <Link to="/approvals/$id" params={{ id: approvalId }}>
            {shortId(approvalId)}
          </Link>
          {resolution.reason !== undefined && <> · “{resolution.reason}”</>}
        </div>
      )}
    </div>
  );
}

/** An id as short as it can still be told from others beside it; the whole id is a click away. */
export function shortId(id: string): string {
  return id.length > 16 ? `${id.slice(0, 4)}…${id.slice(-8)}` : id;
}

/** What needed nobody's decision. */
export function JudgedRow({ row }: ContentProps<"judged">) {
  const { request, effect, reason } = row.judged;
  const ask = askText(request);
  const line = (
    <div className="line">
      <span className="kind">{effect === "deny" ? t("run.row.denied") : t("run.row.judged")}</span>
      <span className="trunc">
        {ask.text} {ask.object !== undefined && <code>{ask.object}</code>}
        {effect !== "deny" && <> · {told(reason)}</>}
      </span>
    </div>
  );
  if (effect !== "deny") return line;
  return (
    <div>
      {line}
      <p className="note">
        <span className="code">permission_denied</span> · {told(reason)} {t("run.deniedTold")}
      </p>
    </div>
  );
}
