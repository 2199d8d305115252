// Labels of what takes effect. They come only from keys below `effect`, so that one test can read all of them.
import { t, type Key, type Values } from "../i18n";
import type { EffectLabel } from "./button";

/** A key whose text stands on a button that takes effect. */
export type EffectKey = Extract<Key, `${string}.effect.${string}`>;

/** The label of a button that takes effect: verb, object and scope. `code` stands behind it as it is. */
export function effect(key: EffectKey, values: Values = {}, code?: string): EffectLabel {
  return code === undefined ? { text: t(key, values) } : { text: t(key, values), code };
}
