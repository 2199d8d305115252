//! What a real bash runs, held against the gate: no line may be allowed that runs something that no part of it names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{allow, policy, shell, subject};
use runyard_domain::gate::{Effect, Rule, RuleKind, judge};

/// Lines that run `touch hit`, without a part that says so; beside `index`, which holds a text that does when it is evaluated.
const LINES: [&str; 57] = [
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
];

/// A directory of its own with what the lines need.
fn directory(number: usize) -> PathBuf {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bash-{}-{number}", std::process::id()));
    fs::create_dir_all(directory.join("bin")).unwrap();
    fs::write(directory.join("index"), "a[$(touch${IFS}hit)]").unwrap();
    fs::write(directory.join("index-runs"), "touch hit").unwrap();
    let git = directory.join("bin/git");
    fs::write(&git, "#!/bin/bash\n/usr/bin/touch hit\n").unwrap();
    let made = Command::new("chmod").arg("+x").arg(git).status().unwrap();
    assert!(made.success());
    directory
}

#[test]
fn c11_what_bash_runs_without_a_part_that_says_so_is_not_allowed() {
    // Everything is allowed but what the lines hide.
    let rules: Vec<Rule> =
        vec![Rule::new(Effect::Allow, RuleKind::Shell, None).unwrap(), allow(RuleKind::Write, "**")];
    let denied =
        [rules.clone(), vec![Rule::new(Effect::Deny, RuleKind::Shell, Some("touch *")).unwrap()]].concat();
    for (number, line) in LINES.iter().enumerate() {
        let directory = directory(number);
        let status = Command::new("bash")
            .args(["--norc", "-c", line])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.unwrap();
        assert!(directory.join("hit").exists(), "bash does not run it: {line}");
        let seen = judge(&policy(&denied), &subject(), &shell(line)).effect == Effect::Deny;
        let asked = judge(&policy(&rules), &subject(), &shell(line)).effect == Effect::Ask;
        assert!(seen || asked, "the gate does not see it: {line}");
        fs::remove_dir_all(directory).unwrap();
    }
}
