// A small repository that looks like one: what the agents of the tests read and change.
const BOOKING = `import { berths } from "./berths.js";

/** Books a berth for a ship, if it fits. */
export function book(ship, arrival, nights) {
  const free = berths.filter((berth) => berth.length >= ship.length);
  if (free.length === 0) {
    return { ok: false, reason: "no berth" };
  }
  const berth = free[0];
  return { ok: true, berth: berth.name, until: arrival + nights };
}

/** The day after which a ship has to be gone. */
export function lastDay(arrival, nights) {
  const day = new Date(arrival);
  day.setDate(day.getDate() + nights);
  return day;
}

/** Whether two stays are at the same time. */
export function overlap(one, other) {
  return one.from < other.until && other.from < one.until;
}

/** Frees a berth again. */
export function release(name) {
  const berth = berths.find((each) => each.name === name);
  berth.ship = undefined;
}

/** From April to September it is summer. */
export function isSummer(day) {
  const month = day.getMonth();
  return month >= 3 && month <= 8;
}

/** What a stay is called on the bill. */
export function billLine(ship, nights) {
  return \`\${ship.name}, \${nights} nights\`;
}

/** What a stay costs. */
export function price(ship, nights) {
  return ship.length * nights * 2;
}
`;

export const FILES: Record<string, string> = {
  "README.md": "# Harbor\n\nTakes bookings for berths.\n\n    npm test\n",
  "src/booking.js": BOOKING,
  "src/berths.js": `export const berths = [\n  { name: "A1", length: 12 },\n  { name: "A2", length: 18 },\n  { name: "B1", length: 30 },\n];\n`,
  "docs/prices.md": "# Prices\n\nTwo per metre and night.\n",
  ".gitignore": "*.log\nnode_modules\n",
  // A file tests/pause makes it slower, for whoever wants to watch.
  "tests/run.sh": `number=0
for name in "a ship that fits" "a ship that is too long" "the last day" "two stays that overlap" "a berth that is freed" "the price of a stay"; do
  number=$((number + 1))
  sleep "$(cat tests/pause 2>/dev/null || echo 0)"
  echo "ok $number - $name"
done
if grep -q '!berth.ship' src/booking.js; then
  echo "ok 7 - the same berth is not given twice"
else
  echo "not ok 7 - the same berth is not given twice" >&2
  exit 1
fi
`,
};

/** More lines than a diff shows at once. */
export const HUGE_FILE: Record<string, string> = {
  "data/tides.csv": `${Array.from({ length: 900 }, (_, line) => `2026-01-01,${line},${(line * 37) % 91}`).join("\n")}\n`,
};
