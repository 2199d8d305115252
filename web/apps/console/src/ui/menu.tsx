// A menu that opens from a button. Not modal: the page stays reachable and nothing is injected into it.
import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { floatingPlace } from "./floating";
import { Icon, type IconName } from "./icon";

/** One entry. With `checked` it is a tick, otherwise something to do. */
export interface MenuItem {
  key: string;
  label: ReactNode;
  icon?: IconName;
  hint?: ReactNode;
  checked?: boolean;
  /** Red words: it ends or removes something. */
  danger?: boolean;
  disabledReason?: string | undefined;
  onSelect: () => void;
}

/** A menu. `items` in groups are divided by a line. */
export function Menu({ trigger, groups, label, align = "end" }: {
  trigger: ReactNode;
  groups: readonly (readonly MenuItem[])[];
  label: string;
  align?: "start" | "end";
}) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal container={floatingPlace()}>
        <DropdownMenu.Content className="menu" align={align} sideOffset={4} collisionPadding={8} aria-label={label}>
          {groups.map((items, group) => (
            <DropdownMenu.Group key={group} className="menu__group">
              {items.map((item) => (
                <Entry key={item.key} item={item} />
              ))}
            </DropdownMenu.Group>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function Entry({ item }: { item: MenuItem }) {
  const inside = (
    <>
      {item.icon && <Icon name={item.icon} />}
      <span className="grow">{item.label}</span>
      {item.hint !== undefined && <span className="muted">{item.hint}</span>}
    </>
  );
  const className = `menu__item${item.danger ? " menu__item--danger" : ""}`;
  const disabled = item.disabledReason !== undefined;
  if (item.checked !== undefined) {
    return (
      <DropdownMenu.CheckboxItem
        className={className}
        checked={item.checked}
        disabled={disabled}
        // The list stays open: several are chosen one after the other.
        onSelect={(event) => event.preventDefault()}
        onCheckedChange={item.onSelect}
      >
        <span className={`box${item.checked ? " on" : ""}`}>{item.checked && <Icon name="check" />}</span>
        {inside}
      </DropdownMenu.CheckboxItem>
    );
  }
  return (
    <DropdownMenu.Item className={className} disabled={disabled} title={item.disabledReason} onSelect={item.onSelect}>
      {inside}
    </DropdownMenu.Item>
  );
}
