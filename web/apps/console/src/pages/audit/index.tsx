// The audit: who did what in this installation, and what is recorded of one run.
export { AuditPage } from "./page";
export { AuditTab } from "./tab";
