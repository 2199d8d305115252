//! What a real bash runs, held against the gate: no line may be allowed that runs something that no part of it names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{allow, policy, shell, subject};
use runyard_domain::gate::{Effect, Rule, RuleKind, judge};

/// Lines that run `touch hit`, without a part that says so; beside `index`, which holds a text that does when it is evaluated.
const LINES: &[&str] = &[
    "time -- touch hit",
    "time -p -- touch hit",
    "coproc echo { touch hit; }; wait",
    "coproc x (touch hit); wait",
    "coproc x if true; then touch hit; fi; wait",
    "env -- X=1 touch hit",
    "find . $(printf -- '-exec touch hit ;')",
    "X='-exec touch hit ;'; find . -maxdepth 0 $X",
    "echo '-exec touch hit ;' | xargs find . -maxdepth 0",
    "find . -maxdepth 0 -exec env -u + touch hit \\;",
    "jobs -x touch hit",
    "/proc/self/exe -c 'touch hit'",
    "exec /proc/self/exe -c 'touch hit'",
    "history -s touch hit; fc -s",
    "BASH_CMDS[git]=$PWD/bin/git; git status",
    "shopt -s expand_aliases; BASH_ALIASES[echo]='touch hit #'\necho x",
    "for PATH in $PWD/bin; do /bin/true; git status; done",
    "read PATH <<< $PWD/bin; git status",
    "printf -v PATH %s $PWD/bin; git status",
    "export $(echo PATH=$PWD/bin); git status",
    "set -k; bash -c : BASH_ENV=<(echo touch hit)",
    "set -a; : ${BASH_ENV:=index-runs}; bash -c :",
    "for x in \"$(cat index)\"; do echo $((x)); done",
    "for x in \"$(cat index)\"; do echo $((1 + $x)); done",
    "set -- \"$(cat index)\"; echo $(($1))",
    "x=$(cat index); y=abc; echo ${y:x}",
    "x=$(cat index); y=abc; echo \"${y:0:$x}\"",
    "x=$(cat index); echo ${y[x]}",
    "x=$(cat index); echo ${y[$x]}",
    "x=$(cat index); echo ${!x}",
    "x=$(cat index); echo ${x@P}",
    "x=$(cat index); y[x]=1",
    "x=$(cat index); echo >y {z[x]}>y",
    "x=$(cat index); [[ $x -eq 1 ]]",
    "x=$(cat index); [[ x -eq 1 ]]",
    "x=$(cat index); [[ -v $x ]]",
    "x=$(cat index); test -v \"$x\"",
    "x=$(cat index); y=-v; [ \"$y\" \"$x\" ]",
    "[ -n a -a $(echo -v; cat index) ]",
    "x=$(cat index); a=1; unset \"$x\"",
    "x=$(cat index); read $x <<< a",
    "x=$(cat index); sleep 0 & wait -n -p \"$x\"",
    "x=$(cat index); read 'y[x]' <<< a",
    "x=$(cat index); printf -v \"$x\" a",
    "x=-v$(cat index); printf \"$x\" a",
    "x=$(cat index); declare -i y=x",
    "x=$(cat index); declare -n y=$x; echo $y",
    "x=$(cat index); declare $x=1",
    "x=$(cat index); declare 'y[x]=1'",
    "f() { local $1; }; f \"$(cat index)=1\"",
    "x=$(cat index); let x",
    "x=$(cat index); RANDOM=$x",
    "x=$(cat index); OPTIND=$x",
    "x=$(cat index); HISTCMD=$x",
    "trap $(echo 'touch${IFS}hit EXIT')",
    "trap -- $(echo 'touch${IFS}hit EXIT')",
    "source <(echo touch hit)",
    // A shell that reads something else than what stands in the line.
    "bash <<<'true' <evil.sh",
    "echo 'touch hit' | bash 5<<<'true'",
    "bash /proc/self/cwd/evil.sh <<<'true'",
    "bash //dev/stdin <<<'touch hit'",
    "bash /dev/../dev/stdin <<<'touch hit'",
    ". //dev/stdin <<<'touch hit'",
    "bash <<'E'\nhead -c5 >x\necho touch hit\nE",
    "bash -login -c 'touch hit'",
    "bash -noediting -c 'touch hit'",
    "bash -rcfile evil.sh -ic :",
    // Assignments that are told in other ways.
    "export \"PATH=$PWD/bin:$PATH\"; git status",
    "export \"BASH_ENV=$PWD/evil.sh\"; bash -c :",
    "declare -x \"BASH_ENV=$PWD/evil.sh\"; bash -c :",
    "printf -vPATH %s $PWD/bin; git status",
    "x='1 BASH_ENV=evil.sh'; \\export x=$x; bash -c :",
    "x='$'; export PS1=\"$x(touch hit)\"; bash --norc -i <<< true",
    "env 1=2 touch hit",
    "env a-b=2 touch hit",
    "env -S '1=2 touch hit'",
    "env BASH_FUNC_true%%='() { touch hit; }' bash -c true",
    // Texts that run later, and tests that go on.
    "trap -- '-x; touch hit' EXIT",
    "x=$(cat index); [[ -n a && x -eq 0 ]]",
    "x=$(cat index); [[ -z a || x -eq 0 ]]",
    "x=$(cat index); [[\nx -eq 0 ]]",
    // Options that no word says.
    "tar {--checkpoint=1,--checkpoint-action=exec='touch hit'} -cf a.tar f",
    "tar $(echo --checkpoint=1 --checkpoint-action=exec=./evil.sh) -cf a.tar f",
    "tar cIf 'touch hit;' a.tar f",
    "xargs -a options tar -cf a.tar",
    "echo x >'-Ish evil.sh'; tar -cf a.tar *",
    "sed -n '1e touch hit' f",
    "sed 's/a/touch hit/e' f",
    "sed -ne '1{p;e touch hit' -e '}' f",
    "sed '/a/s//touch hit/ge' f",
    "sed --expression='1e touch hit' f",
    "sed -f edits f",
    "sed $(echo -fedits) f",
    "diff3 --diff-program=./evil.sh f f f",
    "sdiff --diff-program=./evil.sh f evil.sh",
    "git init -q; git -C . -c alias.x='!touch hit' x",
    "git --git-dir .git -c alias.x='!touch hit' x",
    "git init -q; git {-c,alias.x='!touch hit'} x",
    "git init -q; git $(echo -c alias.x=!./evil.sh) x",
    "git init -q; echo -c alias.x=!./evil.sh x | xargs git",
    "git init -q; git ls-remote --exec='touch hit;' .",
    "git init -q; git fetch-pack --exec='touch hit;' . HEAD",
    "echo connect git-upload-pack | git remote-ext x 'touch hit'",
    "git init -q; git config --comment list core.fsmonitor 'touch hit' && git status",
    "git init -q; git config -- core.fsmonitor 'touch hit; -l' && git status",
    "git init -q; mkdir -p t/hooks; cp evil.sh t/hooks/post-index-change; git init -q --template=t; git add f",
    "git init -q; git fast-import --quiet <commit; git log --format='[core]%n fsmonitor=touch hit' --output=.git/config x; git status",
];

/// What a person lets be done without being asked, and lines that run `touch hit` all the same.
const BEYOND: [(&[&str], &[&str]); 4] = [
    (
        &["true", "echo *", "cat *"],
        &[
            "bash <<<'true' <evil.sh",
            "cat evil.sh | bash 5<<<'true'",
            "cat evil.sh | bash 5<<E\ntrue\nE",
            "bash 5<evil.sh <<<'true' <&5",
            "bash 5<evil.sh <<<'true' 0<&5",
            "bash <<<'true' 00<evil.sh",
            "bash <<<'true' <>evil.sh",
            "bash /proc/self/cwd/evil.sh <<<'true'",
            "bash /dev/fd/5 <<<'true' 5<evil.sh",
            "sh /proc/self/cwd/evil.sh <<E\ntrue\nE",
            "./env true",
            "./bash -c true",
            "./timeout 5 true",
            "bin/../env true",
            "bash -rcfile true -ic true",
            // Bash takes `\"` in backticks for a quote only directly in double quotes, other shells in all of these.
            "echo \"${x:-`echo \\\"; touch hit; echo \\\"`}\"",
            "cat <<E\n`echo \\\"; touch hit; echo \\\"`\nE",
            "cat <<E\n${x:-`echo \\\"; touch hit; echo \\\"`}\nE",
        ],
    ),
    (&["head *", "echo *"], &["bash <<'E'\nhead -c5\necho ./evil.sh\nE"]),
    (
        &["git *", "echo *", "npm *"],
        &[
            "git init -q; git -C . -c alias.x='!touch hit' x",
            "git init -q; git {-c,alias.x='!touch hit'} x",
            "git init -q; git --shallow-file x -c alias.x='!touch hit' x",
            "git init -q; git -C $(echo . -c alias.x=!./evil.sh) x",
            "git init -q; git ls-remote --exec='touch hit;' .",
            "git init -q; git config --comment list core.fsmonitor 'touch hit' && git status",
            "git init -q; git config \"$(echo --add)\" core.fsmonitor 'touch hit' && git status",
        ],
    ),
    (
        &["sort *", "tar *", "sed *", "export *", "true", "echo *", "cat *"],
        &[
            "export \"BASH_ENV=$PWD/evil.sh\"; bash -c true",
            "sed 's/a/touch hit/e' f",
            "tar {-I,'touch hit;'} -cf a.tar f",
        ],
    ),
];

/// A directory of its own with what the lines need.
fn directory(number: usize) -> PathBuf {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bash-{}-{number}", std::process::id()));
    fs::create_dir_all(directory.join("bin")).unwrap();
    fs::write(directory.join("index"), "a[$(touch${IFS}hit)]").unwrap();
    fs::write(directory.join("index-runs"), "touch hit").unwrap();
    fs::write(directory.join("f"), "a\nb\n").unwrap();
    fs::write(directory.join("options"), "--checkpoint=1 --checkpoint-action=exec=./evil.sh f").unwrap();
    fs::write(directory.join("edits"), "1e touch hit\n").unwrap();
    fs::write(directory.join("commit"), "commit refs/heads/x\ncommitter a <a> 0 +0000\ndata 0\n").unwrap();
    for program in ["bin/git", "evil.sh", "env", "bash", "timeout", "true"] {
        fs::write(directory.join(program), "#!/bin/bash\n/usr/bin/touch hit\n").unwrap();
        let made = Command::new("chmod").arg("+x").arg(directory.join(program)).status().unwrap();
        assert!(made.success());
    }
    directory
}

/// Whether the line runs `touch hit`.
fn hits(number: usize, line: &str) -> bool {
    let directory = directory(number);
    let status = Command::new("bash")
        .args(["--norc", "-c", line])
        .current_dir(&directory)
        // Neither what the person who runs the tests has configured, nor a repository but the line's own.
        .env("HOME", &directory)
        .env("GIT_CEILING_DIRECTORIES", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap();
    let hit = directory.join("hit").exists();
    fs::remove_dir_all(directory).unwrap();
    hit
}

#[test]
fn c11_what_bash_runs_without_a_part_that_says_so_is_not_allowed() {
    // Everything is allowed but what the lines hide.
    let rules: Vec<Rule> =
        vec![Rule::new(Effect::Allow, RuleKind::Shell, None).unwrap(), allow(RuleKind::Write, "**")];
    let denied =
        [rules.clone(), vec![Rule::new(Effect::Deny, RuleKind::Shell, Some("touch *")).unwrap()]].concat();
    for (number, line) in LINES.iter().enumerate() {
        assert!(hits(number, line), "bash does not run it: {line}");
        let seen = judge(&policy(&denied), &subject(), &shell(line)).effect == Effect::Deny;
        let asked = judge(&policy(&rules), &subject(), &shell(line)).effect == Effect::Ask;
        assert!(seen || asked, "the gate does not see it: {line}");
    }
}

#[test]
fn c11_a_rule_for_harmless_programs_allows_nothing_else_that_bash_runs() {
    for (at, (allowed, lines)) in BEYOND.iter().enumerate() {
        let rules: Vec<Rule> = allowed.iter().map(|program| allow(RuleKind::Shell, program)).collect();
        for (number, line) in lines.iter().enumerate() {
            assert!(hits(1_000 * (at + 1) + number, line), "bash does not run it: {line}");
            let judgement = judge(&policy(&rules), &subject(), &shell(line));
            assert_eq!(judgement.effect, Effect::Ask, "{line}: {judgement}");
        }
    }
}
