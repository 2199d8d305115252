// Without a session there is nothing to see; with one that has ended, what is open stays behind the login.
import { useHub } from "@runyard/react";
import { lazy, Suspense, useEffect, useRef, type ReactNode } from "react";
import { loggedInAgain } from "./logins";

const LoginPanel = lazy(() => import("../pages/login/page").then(({ LoginPanel }) => ({ default: LoginPanel })));
const SessionEnded = lazy(() => import("../pages/login/ended").then(({ SessionEnded }) => ({ default: SessionEnded })));

/** Shows the page to whoever is logged in. */
export function SessionGate({ children }: { children: ReactNode }) {
  const { link, actor } = useHub();
  const refused = link.kind === "refused" && link.code === "AUTHENTICATION_ERROR";
  const was = useRef(false);
  const ended = useRef(false);
  useEffect(() => {
    if (refused) ended.current = was.current;
    if (!actor || refused) return;
    was.current = true;
    if (ended.current) loggedInAgain();
    ended.current = false;
  });
  if (refused && !was.current) {
    return (
      <Suspense fallback={null}>
        <LoginPanel />
      </Suspense>
    );
  }
  return (
    <>
      {children}
      {refused && (
        <Suspense fallback={null}>
          <SessionEnded />
        </Suspense>
      )}
    </>
  );
}
