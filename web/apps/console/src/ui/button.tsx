// Buttons and links that look like buttons. What takes effect is amber or red and nothing else is.
import { Link, type LinkProps } from "@tanstack/react-router";
import { useId, useRef, useState, type ComponentProps, type KeyboardEvent, type MouseEvent, type ReactNode } from "react";
import { announce } from "../app/announce";
import { t, useLanguage } from "../i18n";
import { useArming } from "./arming";
import { Icon, type IconName } from "./icon";

/** How a button looks, which is what it means. */
export type ButtonKind = "plain" | "ink" | "ghost" | "review" | "effect" | "danger" | "reject";

interface Look {
  kind?: ButtonKind;
  icon?: IconName;
  large?: boolean;
  className?: string;
}

/** What a button takes: those of its own, and what any button takes except to be disabled. */
export interface ButtonProps extends Look, Omit<ComponentProps<"button">, "disabled" | "className" | "onClick"> {
  /** It has been pressed and the answer is not there yet. */
  pending?: boolean;
  /** Why it cannot be pressed now. It keeps its focus and says so. */
  disabledReason?: string | undefined;
  onClick?: (event: MouseEvent<HTMLButtonElement>) => void;
  /** The name where there is only an icon. */
  label?: string | undefined;
  pressed?: boolean;
  expanded?: boolean;
}

function classes({ kind = "plain", large, className }: Look, iconOnly: boolean): string {
  const names = ["btn"];
  if (kind !== "plain") names.push(`btn--${kind}`);
  if (large) names.push("btn--lg");
  if (iconOnly) names.push("btn--icon");
  if (className) names.push(className);
  return names.join(" ");
}

/** A button. It is never disabled silently: `disabledReason` is read out and shown as its title. */
export function Button({ kind, icon, large, className, label, pressed, expanded, ...given }: ButtonProps) {
  const { pending = false, disabledReason, onClick, children, ...rest } = given;
  useLanguage();
  const reason = useId();
  const off = pending || disabledReason !== undefined;
  const described = [disabledReason === undefined ? "" : reason, rest["aria-describedby"] ?? ""].filter(Boolean).join(" ");
  return (
    <>
      <button
        type="button"
        aria-label={label}
        aria-pressed={pressed}
        aria-expanded={expanded}
        {...rest}
        className={classes({ ...(kind && { kind }), ...(large && { large }), ...(className && { className }) }, children === undefined)}
        aria-disabled={off || undefined}
        aria-busy={pending || undefined}
        aria-describedby={described || undefined}
        title={disabledReason ?? rest.title ?? label}
        onClick={(event) => {
          if (off) event.preventDefault();
          else onClick?.(event);
        }}
      >
        {icon && <Icon name={icon} />}
        {pending ? <span>{t("common.sending")}</span> : children}
      </button>
      {disabledReason !== undefined && (
        <span id={reason} className="sr">
          {disabledReason}
        </span>
      )}
    </>
  );
}

/** What a button that takes effect takes: its label comes from a key below `effect`. */
export interface EffectButtonProps extends Omit<ButtonProps, "kind" | "children" | "label" | "type" | "onKeyDown" | "ref"> {
  /** Red: the effect is hard to take back. */
  danger?: boolean;
  /** Without a colour of its own: there is a further effect beside it. */
  quiet?: boolean;
  /** Verb, object and scope. Made with `effect(key, values)`. */
  label: EffectLabel;
  /** What it is about beyond its label, such as an id and a digest: where that changes, it has to be looked at anew. */
  about?: string;
}

/** A text that says verb, object and scope. Only `effect()` in ./effect makes one. */
export type EffectLabel = { readonly text: string; readonly code?: string };

/**
 * The button that takes effect, when what it does has been on the screen for a moment. It is pressed with a pointer or with Space:
 * Enter takes no effect, wherever the focus is.
 */
export function EffectButton({ danger = false, quiet = false, label, about = "", disabledReason, onClick, ...rest }: EffectButtonProps) {
  useLanguage();
  const element = useRef<HTMLButtonElement>(null);
  const [hinted, setHinted] = useState(false);
  const { armed, arming, look } = useArming(element, JSON.stringify([label.text, label.code, about]));
  const kind = danger ? "danger" : quiet ? undefined : "effect";
  const unarmed = rest.pending || armed ? undefined : t("common.justAppeared");
  const press = (repeated: boolean) => {
    look();
    arming.press(performance.now(), repeated);
    look();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === " ") press(event.repeat);
    if (event.key !== "Enter") return;
    event.preventDefault();
    announce(t("common.spaceHint"));
    setHinted(true);
  };
  return (
    <Button
      {...rest}
      {...(kind && { kind })}
      ref={element}
      type="button"
      disabledReason={disabledReason ?? unarmed}
      onPointerDown={() => press(false)}
      onPointerCancel={() => arming.release()}
      onBlur={() => {
        arming.release();
        setHinted(false);
      }}
      onKeyDown={onKeyDown}
      onClick={(event) => {
        if (arming.click(performance.now(), event.detail)) onClick?.(event);
      }}
    >
      {hinted && (
        <span className="effecthint" aria-hidden="true">
          {t("common.spaceHint")}
        </span>
      )}
      <span className="effectlabel">
        {label.text}
        {label.code !== undefined && (
          <>
            {" "}
            <code>{label.code}</code>
          </>
        )}
      </span>
    </Button>
  );
}

/** What a link that looks like a button takes: those of a link of the router, and the look. */
export type LinkButtonProps = LinkProps & Look & { children?: ReactNode; label?: string; onClick?: () => void };

/** A link that looks like a button. */
export function LinkButton({ kind, icon, large, className, children, label, ...link }: LinkButtonProps) {
  const look: Look = { ...(kind && { kind }), ...(large && { large }), ...(className && { className }) };
  return (
    <Link {...link} className={classes(look, children === undefined)} aria-label={label} title={label}>
      {icon && <Icon name={icon} />}
      {children}
    </Link>
  );
}
