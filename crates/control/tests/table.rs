//! The control plane at a glance: every action with its route, what it does to the world, who may call it.
#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use runyard_actions::SideEffects;
use runyard_engine::{Role, permissions as may};

/// Name, route, write or read, whether it is for people only, the permission.
type Row = (String, String, &'static str, &'static str, String);

fn table() -> Vec<Row> {
    let rows = runyard_control::actions().into_iter().map(|action| {
        let action = action.unwrap();
        let spec = action.spec();
        let effects = match spec.side_effects {
            SideEffects::Read => "read",
            SideEffects::Write => "write",
            SideEffects::Destructive => "destructive",
        };
        let people = if spec.people_only { "people" } else { "-" };
        let route = spec.http.as_ref().map(ToString::to_string).unwrap_or_default();
        (spec.name.to_string(), route, effects, people, spec.permissions.join(" "))
    });
    rows.collect()
}

#[test]
fn j06_every_action_says_who_may_call_it() {
    #[rustfmt::skip]
    let expected = [
        ("run_create",       "POST /api/v1/runs",                   "write", "-",      may::RUNS_WRITE),
        ("run_list",         "GET /api/v1/runs",                    "read",  "-",      may::RUNS_READ),
        ("run_show",         "GET /api/v1/runs/{id}",               "read",  "-",      may::RUNS_READ),
        ("run_events",       "GET /api/v1/runs/{id}/events",        "read",  "-",      may::RUNS_READ),
        ("run_cancel",       "POST /api/v1/runs/{id}/cancel",       "write", "-",      may::RUNS_WRITE),
        ("run_command",      "POST /api/v1/runs/{id}/commands",     "write", "-",      may::RUNS_WRITE),
        ("run_replay",       "GET /api/v1/runs/{id}/replay",        "read",  "-",      may::RUNS_READ),
        ("run_diff",         "GET /api/v1/runs/{id}/diff",          "read",  "-",      may::RUNS_READ),
        ("run_diff_file",    "GET /api/v1/runs/{id}/diff/{file}",   "read",  "-",      may::RUNS_READ),
        ("run_apply",        "POST /api/v1/runs/{id}/apply",        "write", "people", may::RUNS_WRITE),
        ("run_undo",         "POST /api/v1/runs/{id}/undo",         "write", "people", may::RUNS_WRITE),
        ("artifact_add",     "POST /api/v1/runs/{id}/artifacts",    "write", "-",      may::ARTIFACTS_WRITE),
        ("artifact_list",    "GET /api/v1/runs/{id}/artifacts",     "read",  "-",      may::RUNS_READ),
        ("artifact_get",     "GET /api/v1/runs/{id}/artifacts/{artifact}", "read", "-", may::RUNS_READ),
        ("approval_list",    "GET /api/v1/approvals",               "read",  "-",      may::RUNS_READ),
        ("approval_show",    "GET /api/v1/approvals/{id}",          "read",  "-",      may::RUNS_READ),
        ("approval_resolve", "POST /api/v1/approvals/{id}/resolve", "write", "people", may::APPROVALS_RESOLVE),
        ("approval_snooze",  "POST /api/v1/approvals/{id}/snooze",  "write", "people", may::APPROVALS_RESOLVE),
        ("policy_show",      "GET /api/v1/policy",                  "read",  "-",      may::POLICY_READ),
        ("policy_add",       "POST /api/v1/policy/rules",           "write", "people", may::POLICY_WRITE),
        ("policy_remove",    "DELETE /api/v1/policy/rules/{id}",    "write", "people", may::POLICY_WRITE),
        ("policy_test",      "POST /api/v1/policy/test",            "read",  "-",      may::POLICY_READ),
        ("token_create",     "POST /api/v1/tokens",                 "write", "people", may::TOKENS_WRITE),
        ("token_list",       "GET /api/v1/tokens",                  "read",  "people", may::TOKENS_WRITE),
        ("token_revoke",     "DELETE /api/v1/tokens/{id}",          "write", "people", may::TOKENS_WRITE),
        ("workspace_list",   "GET /api/v1/workspaces",              "read",  "-",      may::WORKSPACES_READ),
        ("workspace_add",    "POST /api/v1/workspaces",             "write", "people", may::WORKSPACES_WRITE),
        ("workspace_remove", "DELETE /api/v1/workspaces/{id}",      "write", "people", may::WORKSPACES_WRITE),
        ("agent_list",       "GET /api/v1/agents",                  "read",  "-",      may::RUNS_READ),
        ("edge_list",        "GET /api/v1/edges",                   "read",  "-",      may::RUNS_READ),
        ("session_list",     "GET /api/v1/sessions",                "read",  "-",      may::RUNS_READ),
        ("session_close",    "POST /api/v1/sessions/{id}/close",    "write", "people", may::RUNS_WRITE),
        ("backend_list",     "GET /api/v1/backends",                "read",  "-",      may::RUNS_READ),
        ("backend_show",     "GET /api/v1/backends/{profile}",      "read",  "-",      may::RUNS_READ),
        ("backend_check",    "POST /api/v1/backends/{profile}/check", "write", "people", may::RUNS_WRITE),
        ("audit_list",       "GET /api/v1/audit",                   "read",  "-",      may::AUDIT_READ),
        ("audit_verify",     "GET /api/v1/audit/verify",            "read",  "-",      may::AUDIT_READ),
        ("review_run",       "GET /api/v1/prompts/review-run/{run}", "read", "-",      may::RUNS_READ),
        ("summarise_failures", "GET /api/v1/prompts/summarise-failures", "read", "-",  may::RUNS_READ),
        ("health",           "GET /api/v1/health",                  "read",  "-",      ""),
    ];
    let expected = expected.map(|(name, route, effects, people, permission)| {
        (name.to_owned(), route.to_owned(), effects, people, permission.to_owned())
    });
    assert_eq!(table(), expected);
}

#[test]
fn a_viewer_reads_and_changes_nothing() {
    let viewer = Role::Viewer.grants();
    for (name, _, effects, _, permission) in table() {
        let may = permission.is_empty() || viewer.include(&permission);
        assert_eq!(may, effects == "read" && permission != may::TOKENS_WRITE, "{name}");
    }
}

#[test]
fn every_definition_is_whole() {
    for action in runyard_control::actions() {
        let action = action.unwrap();
        let spec = action.spec();
        spec.input.check().unwrap();
        spec.output.as_ref().unwrap().check().unwrap();
        for example in &spec.examples {
            assert_eq!(spec.input.issues_with_defaults(example), Ok(vec![]), "{}", spec.name);
        }
    }
}

#[test]
fn a20_runs_and_approvals_can_be_read_by_address_and_a_new_run_followed_as_a_task() {
    let actions: Vec<_> = runyard_control::actions().into_iter().map(Result::unwrap).collect();
    let addresses = actions.iter().filter_map(|action| action.spec().resource.as_ref());
    let addresses: Vec<String> = addresses.map(ToString::to_string).collect();
    assert_eq!(
        addresses,
        [
            "runyard://runs",
            "runyard://runs/{id}",
            "runyard://runs/{id}/events",
            "runyard://runs/{id}/diff",
            "runyard://approvals",
            "runyard://approvals/{id}",
        ]
    );
    let named = |which: fn(&runyard_actions::ActionSpec) -> bool| -> Vec<&str> {
        actions.iter().filter(|action| which(action.spec())).map(|action| action.name()).collect()
    };
    assert_eq!(named(|spec| spec.task != runyard_actions::TaskUse::Never), ["run_create"]);
    assert_eq!(named(|spec| spec.prompt), ["review_run", "summarise_failures"]);
}
