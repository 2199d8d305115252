// A place where nothing is yet: what it is for, and the next command.
import type { ReactNode } from "react";
import { t, useLanguage } from "../i18n";
import { CopyButton } from "./copy";
import { Icon, type IconName } from "./icon";
import { Block } from "./text";

/** What stands where nothing is. `command` can be copied; `action` is one button. */
export function Empty({ icon, title, children, command, action }: {
  icon?: IconName;
  title: string;
  children?: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  useLanguage();
  return (
    <section className="empty">
      {icon && <Icon name={icon} />}
      <h2>{title}</h2>
      {children && <div className="empty__text">{typeof children === "string" ? <p>{children}</p> : children}</div>}
      {command && (
        <Block command wrap label={t("common.command")}>
          {command}
        </Block>
      )}
      {(action || command) && (
        <div className="acts">
          {action}
          {command && <CopyButton text={command} label={t("common.copyCommand")} />}
        </div>
      )}
    </section>
  );
}
