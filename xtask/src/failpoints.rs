//! Failpoints against their list: each that is reached is listed, each that is listed is reached, a test kills at each, and
//! a hub and its edge commit nothing, move no file and start no process without one before and one after it.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::literals;
use crate::tree::{File, Tree};

/// Where the list stands.
const LIST: &str = "crates/backend/src/failpoint.rs";
const LIST_BEGIN: &str = "FAILPOINTS: &[&str] = &[";
const LIST_END: &str = "];";
/// The test that kills a process at each.
const KILLS: &str = "crates/cli/tests/kills.rs";
const KILLS_LOOP: &str = "in FAILPOINTS {";
const CALL: &str = "failpoint::reach";
/// What outlives a process, and where it is done: what is committed, what puts a file in place, what starts a process. Drafts, and
/// what is removed, are not looked at.
const EFFECTS: [(&str, &[&str]); 13] = [
    ("crates/engine/src/", COMMITS),
    ("crates/control/src/", COMMITS),
    ("crates/server/src/", COMMITS),
    ("crates/cli/src/", COMMITS),
    ("crates/cli/src/", FILES),
    ("crates/cli/src/", STARTS),
    ("crates/edge/src/", FILES),
    ("crates/edge/src/", STARTS),
    ("crates/backend/src/beneath.rs", FILES),
    ("crates/checkout/src/", FILES),
    ("crates/checkout/src/", STARTS),
    ("crates/adapters/src/", FILES),
    ("crates/adapters/src/", STARTS),
];
const FILES: &[&str] = &["fs::rename(", "fs::hard_link(", "renameat(", "renameat_with("];
const STARTS: &[&str] = &[".spawn()", ".output()"];
/// What a store does for good: every port's writing half.
const COMMITS: &[&str] = &[
    "append_until_known(",
    "store.append(",
    "store.acquire(",
    "store.renew(",
    "store.release(",
    "store.keep(",
    "store.forget_expired(",
    "store.delivered(",
    "store.put(",
    "store.collect(",
];
/// Where what applying does step by step is told, and where each step is known: by its failpoint, or as one that has none.
const STEPS: &str = "crates/checkout/src/";
const STEPS_KNOWN: &str = "crates/edge/src/applying.rs";
const STEP: &str = "reached(\"";
/// What needs none, or has none although it could, and why.
const EXEMPT: [(&str, &str); 21] = [
    (
        "crates/adapters/src/codex/tokens.rs",
        "no test kills a hub here, since the run that is killed starts no codex; a whole file or none is there after a death, and only \
         the count of tokens depends on it",
    ),
    (
        "crates/checkout/src/apply/",
        "it tells each step to whoever asks, the edge's failpoints among them; its own tests die at each",
    ),
    (
        "crates/checkout/src/commit/",
        "as above: its own tests die at each step of a commit and of taking it back",
    ),
    (
        "crates/checkout/src/archive.rs",
        "no test dies here; what it keeps has its name only when it is proven, and the checkout goes after that",
    ),
    (
        "crates/checkout/src/base.rs",
        "between `checkout.make` and `checkout.made`, or `setup.ran` and `setup.done`: after a death all of it is made anew",
    ),
    (
        "crates/checkout/src/beneath.rs",
        "no run puts a file in place through it: applying and copying have their own way",
    ),
    (
        "crates/checkout/src/clone.rs",
        "between `checkout.make` and `checkout.made`: what is left is thrown away and made anew",
    ),
    ("crates/checkout/src/copy.rs", "as what it copies for"),
    ("crates/checkout/src/git.rs", "a `git` that ends with the edge, which a test kills meanwhile"),
    ("crates/checkout/src/contents.rs", "the same"),
    ("crates/cli/src/audit_bundle/", "a command of a person's, in whose process no run is under way"),
    ("crates/cli/src/backup.rs", "the same"),
    ("crates/cli/src/backup/", "the same"),
    ("crates/cli/src/init/", "the same"),
    ("crates/cli/src/open.rs", "the same"),
    (
        "crates/cli/src/run/detached.rs",
        "the same: the run that it recorded before goes on with whatever hub comes next",
    ),
    ("crates/cli/src/trust/", "the same"),
    (
        "crates/edge/src/secrets.rs",
        "a person's own command, in whose process no run is under way; its test dies half way",
    ),
    ("crates/edge/src/gateway/listening.rs", "a socket that goes with its process and is made anew"),
    ("crates/edge/src/custody/", "what runs in the supervisors' own processes; their tests kill those"),
    ("crates/edge/src/sandbox.rs", "looks whether bubblewrap works, and leaves nothing"),
];
/// Within so many lines after an effect its failpoint stands.
const AFTER_LINES: usize = 3;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listed = tree.find(LIST).map(|file| list(file, &mut findings)).unwrap_or_default();
    let mut reached = BTreeSet::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/") && file.is_under("src")) {
        for (line, argument) in calls(file) {
            let name = argument.and_then(|argument| argument.strip_prefix('"')?.strip_suffix('"'));
            match name {
                None => findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("call it as `{CALL}(\"name\")`, so that the name can be looked up"),
                )),
                Some(name) if !listed.iter().any(|(_, known)| known == name) => findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("failpoint `{name}` is not in {LIST}, so no test kills there"),
                )),
                Some(name) => {
                    reached.insert(name);
                }
            }
        }
    }
    let unreached = listed.iter().filter(|(_, name)| !reached.contains(name.as_str()));
    findings.extend(
        unreached
            .map(|(line, name)| Finding::new(LIST, *line, format!("failpoint `{name}` is reached nowhere"))),
    );
    let acting = tree.rust().filter(|file| !EXEMPT.iter().any(|(path, _)| file.path.starts_with(path)));
    findings.extend(acting.flat_map(unguarded));
    if let Some(known) = tree.find(STEPS_KNOWN) {
        let applying = tree.rust().filter(|file| file.path.starts_with(STEPS));
        findings.extend(applying.flat_map(|file| unknown_steps(file, known)));
    }
    if !listed.is_empty() && !tree.find(KILLS).is_some_and(kills_at_each) {
        findings.push(Finding::new(KILLS, 1, format!("has to kill at each failpoint: `for … {KILLS_LOOP}`")));
    }
    findings
}

/// The effects that lack a failpoint directly before them, or one shortly after them.
fn unguarded(file: &File) -> Vec<Finding> {
    let of =
        EFFECTS.iter().filter(|(path, _)| file.path.starts_with(path) && !file.path.ends_with("tests.rs"));
    let effects: Vec<&str> = of.flat_map(|(_, effects)| effects.iter().copied()).collect();
    let source = literals::without_tests(&file.text);
    let lines: Vec<&str> = source.lines().collect();
    let reaches = |line: &&str| line.contains(CALL);
    let acts = |line: &&str| effects.iter().any(|effect| line.contains(effect));
    let acting = lines.iter().enumerate().filter(|(_, line)| acts(line));
    let unguarded = acting.filter(|(index, _)| {
        let before = index.checked_sub(1).and_then(|before| lines.get(before)).is_some_and(reaches);
        let after = lines.iter().skip(index + 1).take(AFTER_LINES).any(reaches);
        !(before && after)
    });
    let finding = |(index, _)| {
        let text = "what outlives the process has a failpoint on the line before it and one right after it"
            .to_owned();
        Finding::new(&file.path, index + 1, text)
    };
    unguarded.map(finding).collect()
}

/// The steps of applying that the edge does not know, and so would pass over.
fn unknown_steps(file: &File, known: &File) -> Vec<Finding> {
    let source = literals::without_tests(&file.text);
    let told = source.lines().enumerate().flat_map(|(index, line)| {
        let steps =
            line.match_indices(STEP).filter_map(|(start, _)| line[start + STEP.len()..].split_once('"'));
        steps.map(move |(step, _)| (index + 1, step)).collect::<Vec<_>>()
    });
    let unknown = told.filter(|(_, step)| !known.text.contains(&format!("\"{step}\"")));
    let finding = |(line, step)| {
        let text = format!(
            "applying tells of `{step}`, which {STEPS_KNOWN} does not know: give it a failpoint there"
        );
        Finding::new(&file.path, line, text)
    };
    unknown.map(finding).collect()
}

/// The listed names.
pub(crate) fn names(tree: &Tree) -> Vec<String> {
    let listed = tree.find(LIST).map(|file| list(file, &mut Vec::new())).unwrap_or_default();
    listed.into_iter().map(|(_, name)| name).collect()
}

/// The listed names with their lines; doubled ones are found.
fn list(file: &File, findings: &mut Vec<Finding>) -> Vec<(usize, String)> {
    let source = literals::without_tests(&file.text);
    let begin = source.find(LIST_BEGIN).map_or(source.len(), |start| start + LIST_BEGIN.len());
    let end = source[begin..].find(LIST_END).map_or(source.len(), |length| begin + length);
    let first_line = source[..begin].matches('\n').count();
    let part = File { path: file.path.clone(), text: source[begin..end].to_owned() };
    let mut listed: Vec<(usize, String)> = Vec::new();
    for literal in literals::literals(&part) {
        let line = first_line + literal.line;
        if listed.iter().any(|(_, known)| *known == literal.text) {
            findings.push(Finding::new(
                &file.path,
                line,
                format!("failpoint `{}` is listed twice", literal.text),
            ));
        }
        listed.push((line, literal.text));
    }
    listed
}

/// Every mention of the function outside comments, with its argument if it is called there.
fn calls(file: &File) -> impl Iterator<Item = (usize, Option<&str>)> {
    let source = literals::without_tests(&file.text);
    let code = source.lines().enumerate().filter(|(_, text)| !text.trim_start().starts_with("//"));
    code.flat_map(|(index, text)| {
        text.match_indices(CALL).map(move |(start, _)| {
            let argument = text[start + CALL.len()..].strip_prefix('(').and_then(|rest| rest.split_once(')'));
            (index + 1, argument.map(|(argument, _)| argument))
        })
    })
}

fn kills_at_each(file: &File) -> bool {
    file.lines().any(|(_, text)| text.trim_start().starts_with("for ") && text.ends_with(KILLS_LOOP))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: (&str, &str) =
        (LIST, "//! Doc.\n\npub const FAILPOINTS: &[&str] = &[\n    \"a.b\",\n    \"c.d\",\n];\n");
    const KILLED: (&str, &str) = (KILLS, "fn all() {\n    for failpoint in FAILPOINTS {\n    }\n}\n");
    const REACHED: (&str, &str) = (
        "crates/engine/src/record.rs",
        "fn f() {\n    failpoint::reach(\"a.b\");\n    runyard_backend::failpoint::reach(\"c.d\");\n}\n",
    );

    #[track_caller]
    fn check_tree(files: &[(&str, &str)], expected: &[&str]) {
        let found: Vec<String> = check(&Tree::of(files)).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_list_that_is_reached_and_killed_at_is_clean() {
        check_tree(&[LISTED, KILLED, REACHED], &[]);
        check_tree(&[("crates/engine/src/a.rs", "// failpoint::reach(\"x\")\n")], &[]);
    }

    #[test]
    fn a_failpoint_that_is_not_listed_is_found() {
        let other = ("crates/edge/src/session.rs", "fn f() {\n    failpoint::reach(\"e.f\");\n}\n");
        let expected = "crates/edge/src/session.rs:2: failpoint `e.f` is not in crates/backend/src/failpoint.rs, so no test kills there";
        check_tree(&[LISTED, KILLED, REACHED, other], &[expected]);
    }

    #[test]
    fn a_failpoint_whose_name_cannot_be_seen_is_found() {
        for line in
            ["failpoint::reach(name);", "use runyard_backend::failpoint::reach;", "f(failpoint::reach)"]
        {
            let expected = "crates/edge/src/a.rs:1: call it as `failpoint::reach(\"name\")`, so that the name can be looked up";
            check_tree(&[LISTED, KILLED, REACHED, ("crates/edge/src/a.rs", line)], &[expected]);
        }
    }

    #[test]
    fn a_listed_failpoint_that_is_reached_nowhere_or_listed_twice_is_found() {
        let only_one = ("crates/engine/src/record.rs", "failpoint::reach(\"a.b\");\n");
        let expected = "crates/backend/src/failpoint.rs:5: failpoint `c.d` is reached nowhere";
        check_tree(&[LISTED, KILLED, only_one], &[expected]);
        let in_tests = ("crates/engine/tests/a.rs", "failpoint::reach(\"c.d\");\n");
        check_tree(&[LISTED, KILLED, only_one, in_tests], &[expected]);
        let twice = (LIST, "pub const FAILPOINTS: &[&str] = &[\"a.b\", \"a.b\"];\n");
        let expected = "crates/backend/src/failpoint.rs:1: failpoint `a.b` is listed twice";
        check_tree(&[twice, KILLED, only_one], &[expected]);
    }

    #[test]
    fn what_outlives_the_process_without_a_failpoint_on_each_side_of_it_is_found() {
        for (path, effect) in [
            ("crates/engine/src/record.rs", "    let made = append_until_known(store, change).await?;\n"),
            ("crates/engine/src/owning.rs", "    let made = self.store.acquire(run, owner, term).await?;\n"),
            ("crates/edge/src/owner.rs", "    fs::rename(&draft, path)?;\n"),
            ("crates/cli/src/hub_file.rs", "    let told = fs::rename(&draft, &self.path);\n"),
            ("crates/edge/src/custody.rs", "    let guard = command.spawn()?;\n"),
            ("crates/edge/src/setup.rs", "    let step = command.spawn().map_err(own)?;\n"),
            ("crates/adapters/src/codex/home.rs", "    fs::rename(&draft, path)\n"),
            ("crates/adapters/src/process.rs", "    let mut child = command.spawn()?;\n"),
            ("crates/checkout/src/retaken.rs", "    renameat_with(from, to, flags)?;\n"),
            ("crates/cli/src/projects.rs", "    std::fs::rename(&draft, &path)?;\n"),
            ("crates/cli/src/results.rs", "    self.store.keep(kept).await?;\n"),
            ("crates/engine/src/plain.rs", "    self.store.append(change).await?;\n"),
            ("crates/control/src/blobs.rs", "    store.collect(unused_for).await?;\n"),
            ("crates/server/src/files.rs", "    store.put(content).await?;\n"),
            ("crates/edge/src/probe.rs", "    let said = command.output();\n"),
        ] {
            check_effect(path, effect);
        }
        for exempt in ["crates/edge/src/secrets.rs", "crates/checkout/src/apply/place.rs"] {
            check_tree(&[LISTED, KILLED, REACHED, (exempt, "    fs::rename(&draft, path)?;\n")], &[]);
        }
    }

    #[track_caller]
    fn check_effect(path: &str, effect: &str) {
        let (before, after) = ("    failpoint::reach(\"a.b\");\n", "    failpoint::reach(\"c.d\");\n");
        let found = |line: u32| {
            format!(
                "{path}:{line}: what outlives the process has a failpoint on the line before it and one right after it"
            )
        };
        let reached = ("crates/edge/src/b.rs", REACHED.1);
        for (text, expected) in [
            ([before, effect, after].concat(), None),
            ([before, effect].concat(), Some(found(2))),
            ([effect, after].concat(), Some(found(1))),
            ([before, "    wait();\n", effect, after].concat(), Some(found(3))),
        ] {
            let expected: Vec<&str> = expected.as_deref().into_iter().collect();
            check_tree(&[LISTED, KILLED, reached, (path, &text)], &expected);
        }
    }

    #[test]
    fn a_step_of_applying_that_the_edge_does_not_know_is_found() {
        let known =
            (STEPS_KNOWN, "match step {\n    \"begun\" => failpoint::reach(\"a.b\"),\n    _ => {}\n}\n");
        let told = ("crates/checkout/src/apply/carry.rs", "reached(\"begun\");\nreached(\"turned\");\n");
        let expected = "crates/checkout/src/apply/carry.rs:2: applying tells of `turned`, which crates/edge/src/applying.rs does not \
                        know: give it a failpoint there";
        check_tree(&[LISTED, KILLED, REACHED, known, told], &[expected]);
    }

    #[test]
    fn a_kill_test_that_does_not_go_through_the_list_is_found() {
        let expected = "crates/cli/tests/kills.rs:1: has to kill at each failpoint: `for … in FAILPOINTS {`";
        check_tree(&[LISTED, REACHED], &[expected]);
        let some =
            (KILLS, "for failpoint in &FAILPOINTS[..3] {\n}\nfor failpoint in FAILPOINTS.iter().take(2) {\n");
        check_tree(&[LISTED, REACHED, some], &[expected]);
    }
}
