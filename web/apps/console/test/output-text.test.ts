// C20: what a command wrote is read line by line, whatever pieces it was recorded in.
import type { OutputPiece } from "@runyard/react";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { outputText } from "../src/pages/run/timeline/output-text";

const out = (text: string, omitted = 0): OutputPiece => ({ stream: "stdout", text, omitted });
const err = (text: string, omitted = 0): OutputPiece => ({ stream: "stderr", text, omitted });

describe("what a call wrote", () => {
  it("keeps a line whole whose end was recorded after what the other stream wrote", () => {
    const pieces = [out("ok 5 - a berth\nok 6 - the price of a sta"), err("not ok 7 - the same berth\n"), out("y\n1 failed\n")];
    expect(outputText(pieces)).toBe("ok 5 - a berth\nok 6 - the price of a stay\nnot ok 7 - the same berth\n1 failed\n");
  });

  it("keeps the lines of both streams whole, in as many pieces as they come", () => {
    expect(outputText([out("a"), err("x"), out("b"), err("y"), out("c\nd"), err("z\n"), out("e\n")])).toBe("abc\nxyz\nde\n");
  });

  it("begins on a line of its own while the other stream's line is open", () => {
    expect(outputText([out("downloading"), err("warning: slow\n")])).toBe("downloading\nwarning: slow\n");
  });

  it("takes nothing for the rest of a line where something was left out in between", () => {
    expect(outputText([out("begin of a long li", 900), err("x\n"), out("end\n")])).toBe("begin of a long li\nx\nend\n");
  });

  it("is the text itself where one stream wrote all of it", () => {
    expect(outputText([out("50 %\r100 %\n"), out("done")])).toBe("50 %\r100 %\ndone");
    expect(outputText([out(""), err("")])).toBe("");
  });

  it("has the lines of each stream as they were written, however they were cut and mixed", () => {
    const lines = (mark: string) => fc.array(fc.integer({ min: 0, max: 99 }).map((number) => `${mark}${number}\n`), { maxLength: 8 });
    const cuts = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 6 })), { maxLength: 40 });
    fc.assert(
      fc.property(lines("o"), lines("e"), cuts, (outs, errs, how) => {
        const left = { stdout: outs.join(""), stderr: errs.join("") };
        const pieces: OutputPiece[] = [];
        const take = (stream: "stdout" | "stderr", length: number) => {
          pieces.push({ stream, text: left[stream].slice(0, length), omitted: 0 });
          left[stream] = left[stream].slice(length);
        };
        for (const [first, length] of how) take(first ? "stdout" : "stderr", length);
        take("stdout", left.stdout.length);
        take("stderr", left.stderr.length);
        const shown = outputText(pieces).split("\n").slice(0, -1);
        expect(shown.filter((line) => line.startsWith("o"))).toEqual(outs.map((line) => line.trimEnd()));
        expect(shown.filter((line) => !line.startsWith("o"))).toEqual(errs.map((line) => line.trimEnd()));
      }),
    );
  });
});
