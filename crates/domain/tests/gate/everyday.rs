//! What ordinary people allow is done without a question: the care for what is not known must not reach it.

use crate::support::{allow, deny, policy, shell, subject};
use runyard_domain::gate::{Effect, Rule, RuleKind, judge};

/// Rules as people write them.
const ALLOWED: [&str; 32] = [
    "cargo *",
    "git status *",
    "git diff *",
    "git log *",
    "git show *",
    "git add *",
    "git commit *",
    "git branch *",
    "git stash *",
    "git checkout *",
    "git rev-parse *",
    "npm test",
    "npm run *",
    "npm ci",
    "npx tsc *",
    "ls *",
    "grep *",
    "rg *",
    "head *",
    "tail *",
    "cat *",
    "echo *",
    "wc *",
    "sort *",
    "uniq *",
    "find *",
    "sed *",
    "tar *",
    "uv run *",
    "mkdir *",
    "cd *",
    "pwd",
];

const LINES: [&str; 77] = [
    "cargo test",
    "cargo test -p domain --test gate -- --nocapture",
    "cargo test $FILTER",
    "RUST_LOG=debug cargo test",
    "RUST_BACKTRACE=1 timeout 60 cargo nextest run",
    "cargo +nightly fmt --all",
    "cd crates && cargo check",
    "cargo clippy --all-targets -- -D warnings 2>&1 | tail -5",
    "git status",
    "git status --short",
    "git --no-pager log -3",
    "git log --oneline -5",
    "git log --format='%h %s' -3",
    "git log --oneline main..HEAD -- src",
    "git diff",
    "git diff --stat HEAD~1",
    "git diff --cached -- src/a.rs",
    "git diff -- 'src/*.rs'",
    "git diff -- src/*.rs",
    "git show HEAD:src/a.rs",
    "git add .",
    "git add -A src/*.rs",
    "git add \"$file\"",
    "git commit -m 'Say why'",
    "git commit -m \"$(cat <<'EOF'\nSay why\n\nIt's so.\nEOF\n)\"",
    "git branch --show-current",
    "git stash",
    "git checkout -b topic",
    "git rev-parse --show-toplevel",
    "npm test",
    "npm run build -- --watch",
    "npm run $script",
    "npm ci",
    "npx tsc --noEmit -p web",
    "ls",
    "ls -la src",
    "ls *.md",
    "ls $dir",
    "grep -rn foo src | head",
    "grep -rn \"$name\" src/*.rs | head -20",
    "grep -c '^use' src/lib.rs",
    "rg -n 'fn main' src",
    "rg --files -g '*.rs' | wc -l",
    "cat a.txt",
    "cat *.txt",
    "cat \"$file\"",
    "cat a.txt | sort | uniq -c | sort -rn | head",
    "echo *",
    "echo $HOME",
    "echo \"now: $(cat a.txt)\"",
    "wc -l src/*.rs",
    "sort -u a.txt b.txt",
    "sort -t, -k2 -n a.csv",
    "find . -name '*.rs' -not -path './target/*'",
    "find src -type f | xargs grep -l foo",
    "find . -name '*.rs' -exec grep -l foo {} +",
    "sed -n '1,20p' src/lib.rs",
    "sed -n '/fn main/,/^}/p' src/main.rs",
    "sed -E 's/(a+)[0-9]*/\\1/g; /^$/d' a.txt",
    "sed 's|/usr/local|/opt|g' a.txt",
    "sed -i 's/old/new/' src/lib.rs",
    "sed -i.bak -e 's/old/new/g' -e '$d' src/lib.rs",
    "sed ':a;N;$!ba;s/\\n/ /g' a.txt",
    "sed '1i // new' src/lib.rs",
    "sed 's/[[:space:]]*$//' a.txt",
    "tar czf a.tar.gz src",
    "tar -xzf a.tar.gz",
    "tar -tvf a.tar",
    "uv run pytest -q",
    "uv run pytest -k \"$name\"",
    "mkdir -p target/x && cd target/x && pwd",
    "for f in *.txt; do wc -l \"$f\"; done",
    "if [ -f a.txt ]; then cat a.txt; fi",
    "bash -lc 'cargo test'",
    "bash -euo pipefail -c 'cargo test | tail'",
    "bash <<< 'cargo test'",
    "sh -c 'ls && git status'",
];

#[test]
fn c11_what_ordinary_people_allow_is_not_asked_about() {
    let builtin = ["[ *", "for *"].map(|pattern| allow(RuleKind::Shell, pattern));
    let allowed = ALLOWED.iter().map(|pattern| allow(RuleKind::Shell, pattern));
    let rules: Vec<Rule> =
        allowed.chain(builtin).chain([allow(RuleKind::Shell, "git --no-pager log *")]).collect();
    for line in LINES {
        let judgement = judge(&policy(&rules), &subject(), &shell(line));
        assert_eq!(judgement.effect, Effect::Allow, "{line}: {judgement} {:?}", judgement.parts);
    }
}

#[test]
fn c11_rules_on_other_paths_ask_about_nothing_that_is_said_in_full() {
    let everything = Rule::new(Effect::Allow, RuleKind::Shell, None).unwrap();
    let rules = [
        everything,
        deny(RuleKind::Read, ".env"),
        deny(RuleKind::Read, "secrets/**"),
        deny(RuleKind::Write, "keep/**"),
    ];
    for line in [
        "cargo test",
        "ls -la src",
        "git log --oneline -5",
        "grep -rn foo src | head",
        "cat a.txt src/*.rs",
        "wc -l *.txt",
        "rm -r build",
        "cp a.txt b.txt",
        "sort -o sorted.txt a.txt",
        "tar -czf a.tgz src",
        "echo $HOME *",
    ] {
        let judgement = judge(&policy(&rules), &subject(), &shell(line));
        assert_eq!(judgement.effect, Effect::Allow, "{line}: {judgement} {:?}", judgement.parts);
    }
}
