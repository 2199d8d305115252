// What this browser keeps of somebody's work, and taking it away when they log out.

/** Switches of this browser: they say nothing about anybody's work. */
const KEPT: readonly string[] = ["runyard.keys", "runyard.notify", "runyard.diffLayout"];

/** Takes away all that the page wrote down here: inputs, calls, drafts, comments and ticks. What somebody prefers stays. */
export function forget(...storages: Storage[]): void {
  for (const storage of storages) {
    const names = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");
    for (const name of names) {
      if (name.startsWith("runyard.") && !KEPT.includes(name)) storage.removeItem(name);
    }
  }
}
