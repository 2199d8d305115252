// Whether the person here may do something. Before the session is known nobody is told that they may not.
import { useHub } from "@runyard/react";

/** Whether a permission is there; null where that is not known yet. */
export function useMay(permission: string): boolean | null {
  const { actor, permissions, can } = useHub();
  return actor === null && permissions.length === 0 ? null : can(permission);
}
