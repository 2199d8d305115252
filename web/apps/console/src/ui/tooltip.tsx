// A hint that appears on hover and on focus. It only repeats or explains: nothing is said only here.
import { Tooltip as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { floatingPlace } from "./floating";

/** A hint for one control. */
export function Tooltip({ text, children }: { text: ReactNode; children: ReactNode }) {
  return (
    <Radix.Provider delayDuration={400}>
      <Radix.Root>
        <Radix.Trigger asChild>{children}</Radix.Trigger>
        <Radix.Portal container={floatingPlace()}>
          <Radix.Content className="tooltip" sideOffset={4} collisionPadding={8}>
            {text}
          </Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Radix.Provider>
  );
}
