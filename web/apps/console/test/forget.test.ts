// @vitest-environment happy-dom
// C23: who logs out leaves nothing of their work in the browser.
import { expect, it } from "vitest";
import { forget } from "../src/app/forget";

it("logging out takes away what was typed and called, and keeps what is preferred", () => {
  for (const name of ["page", "keys", "diffLayout", "review.run_1", "review.run_2"]) localStorage.setItem(`runyard.${name}`, "x");
  localStorage.setItem("of.another.page", "x");
  for (const name of ["draft", "dev.input.a", "dev.history.a"]) sessionStorage.setItem(`runyard.${name}`, "x");
  forget(localStorage, sessionStorage);
  expect(Object.keys(localStorage).sort()).toEqual(["of.another.page", "runyard.diffLayout", "runyard.keys"]);
  expect(sessionStorage.length).toBe(0);
});
