// Tokens, money and sizes. What is not known is a dash, never zero.
import { t, useLanguage } from "../i18n";

const UNKNOWN = "–";

/** `980`, `118k`, `1.2M`. */
export function tokensText(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  if (tokens < 999_500) return `${tokens < 9950 ? (tokens / 1000).toFixed(1) : Math.round(tokens / 1000)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}

/** A number of tokens. */
export function Tokens({ tokens }: { tokens: number | null | undefined }) {
  useLanguage();
  if (tokens === null || tokens === undefined) return <span className="num">{UNKNOWN}</span>;
  return (
    <span className="num" title={t("common.tokensExact", { count: tokens.toLocaleString("en-GB") })}>
      {t("common.tokens", { count: tokensText(tokens) })}
    </span>
  );
}

/** `$0.42`; less than a cent says so. */
export function costText(usd: number): string {
  if (usd > 0 && usd < 0.005) return "<$0.01";
  return `$${usd.toFixed(2)}`;
}

/** What something cost in US dollars. */
export function Cost({ usd }: { usd: number | null | undefined }) {
  return <span className="num">{usd === null || usd === undefined ? UNKNOWN : costText(usd)}</span>;
}

/** `412 B`, `18 kB`, `2.4 MB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999_500) return `${Math.round(bytes / 1000)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
