// All words of this language, one file per part of the console.
import { common } from "./common";
import { runs } from "./runs";
import { run } from "./run";
import { approvals } from "./approvals";
import { diff } from "./diff";
import { artifacts } from "./artifacts";
import { audit } from "./audit";
import { system } from "./system";
import { policy } from "./policy";
import { dev } from "./dev";
import { login } from "./login";
import { failures } from "./failures";
import type { Dictionary, Translation } from "../index";

export const zh = { common, runs, run, approvals, diff, artifacts, audit, system, policy, dev, login, failures } satisfies Translation<Dictionary>;
