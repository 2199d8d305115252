// The mark.
import { Link } from "@tanstack/react-router";
import { boot } from "./boot";

/** The mark and the name. */
export function Brand() {
  return (
    <Link to="/" className="brand">
      <svg viewBox="0 0 18 18" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" aria-hidden="true">
        <path d="M3 3v12M15 3v12M3 6.5h4.5c3 0 3 5 6 5H15M3 11.5h3" />
      </svg>
      {boot().hub ? "Runyard" : boot().name}
    </Link>
  );
}
