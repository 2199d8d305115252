// What an approval was about, as the run's own events say it: the installation's audit has only its id and its digest.
import { t } from "../../i18n";
import { visible } from "../../ui";
import { effectLabel, headingKey, short } from "../approvals/label";
import { readAsk } from "../approvals/request";

/** What was asked for: in words, and the command, path or host where there is one. */
export function askedFor(request: unknown): { what: string; object?: string } {
  const ask = readAsk(request);
  const object = effectLabel(ask).code;
  return { what: t(headingKey(ask)), ...(object !== undefined && object !== "" && { object: short(visible(object)) }) };
}

/** The same in a line. */
export function askedText(request: unknown): string {
  const { what, object } = askedFor(request);
  return object === undefined ? what : `${what}: ${object}`;
}
