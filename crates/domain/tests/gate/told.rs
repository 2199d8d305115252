//! Words that choose what a program does: options and subcommands, also where they are not known before the shell runs.

use crate::support::{allow, check, deny, judged};
use runyard_domain::gate::command::{Opening, Unparsed, parse};
use runyard_domain::gate::{Because, Clause, Effect, Note, Risk, Rule, RuleKind};

use Effect::{Allow, Ask, Deny};
use RuleKind::{GitPush, Network, Publish, Shell, Write};

#[track_caller]
fn opening(line: &str, expected: Opening) {
    let parsed = parse(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    assert_eq!(parsed[0].opening, expected, "{line}");
}

#[test]
fn c11_a_word_that_may_become_an_option_makes_a_program_with_such_options_opaque() {
    for words in [
        "$x", "\"$x\"", "\"$@\"", "*", "?x", "[a]*", "{-I,x}", "-$x", "-I$x", "a$x", "`x`", "$(x)", "\"a\"$x",
    ] {
        for program in
            ["tar -cf a.tar", "sort", "rsync a", "git push origin", "git diff", "curl", "ssh h", "sed -n 1p"]
        {
            opening(
                &format!("{program} {words}").replace("$(x)", "$y").replace("`x`", "$z"),
                Opening::Opaque,
            );
        }
    }
    for words in ["./*", "src/*.rs", "a*", "\"a$x\"", "\"src/$x\"", "src/{a,b}.rs", "~/a", "<(a)"] {
        for program in ["tar -cf a.tar", "sort", "rsync a", "git push origin", "git diff", "sed -n 1p"] {
            let parsed = parse(&format!("{program} {words}")).unwrap();
            assert_eq!(
                parsed.last().map(|command| command.opening),
                Some(Opening::Plain),
                "{program} {words}"
            );
        }
    }
    // The other programs have no such options.
    for line in ["ls $x", "cat *", "grep $x", "git add *", "git commit -m \"$x\"", "cargo test $x"] {
        opening(line, Opening::Plain);
    }
    for line in [
        "xargs tar",
        "xargs sort",
        "xargs git",
        "xargs git push",
        "xargs -I x tar -cf a x",
        "xargs -I a sort ab",
    ] {
        let parsed = parse(line).unwrap();
        assert_eq!(parsed[1].opening, Opening::Opaque, "{line}");
    }
    opening("tar cIf x a.tar f", Opening::Opaque);
    opening("tar -cf a.tar -T x", Opening::Opaque);
    opening("tar czf a.tar f", Opening::Plain);
}

#[test]
fn c11_programs_that_are_told_a_command_in_further_ways_are_opaque() {
    for line in [
        "diff3 --diff-program=rm a b c",
        "sdiff --diff-program rm a b",
        "gcc -wrapper rm,x -c a.c",
        "cc -fplugin=./x.so a.c",
        "dpkg-architecture -c rm x",
        "ssh -o ProxyCommand='rm x' h",
        "ssh -oProxyCommand=x h",
        "ssh -F x h",
        "scp -S ./x a h:b",
        "sftp -D ./x h",
        "ssh-keygen -D ./x.so",
        "man -H'rm x' ls",
        "man -C x ls",
        "wget -e use_askpass=./x http://h",
        "curl -K x",
        "ag --pager x y",
        "npx -c 'rm x'",
        "npm exec --call 'rm x'",
        "npm x -c 'rm x'",
        "pnpm dlx -c 'rm x'",
        "logsave /dev/null rm x",
        "socat - EXEC:'rm x'",
        "sem rm x",
        "nix-shell --run 'rm x'",
        "sudo -s <<< 'rm x'",
        "sudo -s",
    ] {
        opening(line, Opening::Opaque);
    }
    for line in [
        "gcc -Wall -c a.c",
        "ssh h ls",
        "curl -sSL http://h",
        "man ls",
        "npx tsc",
        "npm test -c",
        "wget http://h",
    ] {
        opening(line, Opening::Plain);
    }
}

#[test]
fn c11_sed_is_what_it_says_only_where_its_script_edits_and_no_more() {
    for script in [
        "1e rm x",
        "s/a/b/e",
        "s/a/rm x/ge",
        "s/a/b/w x",
        "w x",
        "1,3w x",
        "/a/w x",
        "r x",
        "R x",
        "W x",
        "p;w x",
        "{w x}",
        "s/[/]e/x/",
        "s/a/b",
        "\\,a,w x",
        "1!e",
        "v",
        "F",
        "y/a/b/e",
        "s/a/b/;e",
        "1{p\ne rm\n}",
        "bx w y",
        "s\\a\\b\\",
        "s[a[b[",
        "s]a]b]",
        "sxaxbx",
        "s a b ",
        "s/[]]/b/",
        "s/[^]]/b/",
        "s/[[.a.]]/b/",
        "s/[[xa:]]/b/",
        "s/[[:alpha:x]/b/",
        "s:[[:alpha:]]:b:",
        "a x\\",
        "i\\  \np",
        "s/a/b/d",
        ":a,p",
    ] {
        for options in ["-n", "-e", "-ne", "-E -i -e", "--expression"] {
            opening(&format!("sed {options} '{script}' f"), Opening::Opaque);
        }
        opening(&format!("sed -e p -e '{script}' f"), Opening::Opaque);
        opening(&format!("sed -e'{script}' f"), Opening::Opaque);
        opening(&format!("sed --expression='{script}' f"), Opening::Opaque);
        opening(&format!("sed -i '' '{script}' f"), Opening::Opaque);
    }
    for line in [
        "sed -f x f",
        "sed --file=x f",
        "sed -fx f",
        "sed $x f",
        "sed \"s/a/$x/\" f",
        "sed -e \"$x\" f",
        "sed -e",
        "sed --weird p f",
        "sed - p",
        "sed -n p *",
        "sed -n p -f x",
        "sed -i.git/hooks/* p f",
        "sed --in-place=.git/* p f",
        "sed -i/x p f",
    ] {
        opening(line, Opening::Opaque);
    }
    for script in [
        "p",
        "1,20p",
        "$d",
        "$!N",
        "/a b/,/c/d",
        "/a/I,+3p",
        "0~3p",
        "s/a/b/",
        "s|a|b|gpI",
        "s/[0-9]/x/2",
        "s/[[:space:]]*$//",
        "s/[^_[:alpha:]0-9]/x/",
        "/[^a]$/d",
        "s/a\\/b/c/",
        "y/ab/cd/",
        "1{p;d}",
        "# e\np",
        "a e",
        "1i e",
        "a\\  e",
        ":a;N;ba",
        "s/a/b/ ; p",
        "/^$/d",
    ] {
        opening(&format!("sed '{script}' f"), Opening::Plain);
        opening(&format!("sed -ne '{script}' src/*.rs"), Opening::Plain);
        opening(&format!("sed -i.bak -e '{script}' f"), Opening::Plain);
        opening(&format!("sed -e'{script}' f"), Opening::Plain);
        opening(&format!("sed --in-place=.bak --expression '{script}' f"), Opening::Plain);
        opening(&format!("sed --in-place --expression='{script}' f"), Opening::Plain);
        opening(&format!("sed -i '' '{script}' f"), Opening::Plain);
    }
    let told = Note::BoundedBySandboxOnly { program: "sed".to_owned() };
    assert!(judged(&[], "sed 1e f").notes.contains(&told));
    assert_eq!(judged(&[], "sed p f").notes, []);
    for program in ["docker", "podman"] {
        let note = Note::BoundedBySandboxOnly { program: program.to_owned() };
        assert_eq!(judged(&[], &format!("{program} run x rm y")).notes, [note]);
    }
}

#[test]
fn c11_a_subcommand_of_git_that_is_not_surely_known_is_asked_about() {
    let all = [Rule::new(Allow, Shell, None).unwrap(), allow(Network, "*")];
    for line in [
        "git $x",
        "git {push,origin,main}",
        "git $(echo push origin main)",
        "echo push origin main | xargs git",
        "git -C $x status",
        "git -C \"$@\" status",
        "git --shallow-file x push",
        "git --weird push origin",
        "git -x status",
        "git -$x status",
        "git \"$x\"",
        "git --git-dir=$x status",
    ] {
        check(&all, line, Ask);
        assert_eq!(judged(&all, line).because, Because::Opaque, "{line}");
    }
    for line in [
        "git status",
        "git -C \"$x\" status",
        "git -C x --no-pager log",
        "git --git-dir=x --work-tree y status",
        "git --attr-source HEAD log",
        "git --attr-source=HEAD log",
        "git --version",
        "git",
    ] {
        check(&all, line, Allow);
    }
    for line in ["git -C . -c a=b x", "git --git-dir x --config-env=a=b x", "git -p --exec-path=x y"] {
        check(&all, line, Ask);
    }
    for line in
        ["git push r x", "git --attr-source HEAD push r x", "git send-pack r x", "git -C x http-push r x"]
    {
        check(&[all[0].clone(), all[1].clone(), deny(GitPush, "r *")], line, Deny);
        let judgement = judged(&all, line);
        assert_eq!(judgement.because, Because::Default { clause: Clause::GitPush }, "{line}");
    }
    // A rule about git itself was looked at word by word: what it is not about is asked about, and not denied.
    check(&[all[0].clone(), deny(Shell, "git push *")], "git log $x", Ask);
    check(&[all[0].clone(), deny(Shell, "rm *")], "git $(echo -c alias.x='!rm y') x", Deny);
}

#[test]
fn c11_what_git_writes_besides_is_asked_about() {
    let all = [Rule::new(Allow, Shell, None).unwrap()];
    for line in [
        "git log --output=.git/config",
        "git diff --outp .git/config",
        "git show --output x",
        "git archive -o x HEAD",
        "git format-patch -o x",
        "git init --template=x",
        "git init --templ x y",
        "git checkout-index -a --prefix=.git/hooks/",
        "git --work-tree=.git/hooks checkout x",
        "git -C .git mv a b",
        "git merge-index x -a",
        "git merge-file .git/config a b",
        "git mailinfo .git/config a",
        "git fast-import --export-marks=.git/x",
        "git interpret-trailers --in-place .git/config",
        "git remote-ext x 'rm y'",
        "git ls-remote --exec=x .",
        "git config --comment list core.fsmonitor x",
        "git config -- core.fsmonitor '-l; x'",
        "git config core.fsmonitor 'x: --list'",
        "git config set --comment get core.fsmonitor x",
        "git config --comment -f core.fsmonitor x",
        "git config \"$x\"",
        "git config $x --get a",
        "git config --ed",
    ] {
        check(&all, line, Ask);
    }
    for line in [
        "git config --file x --get a.b",
        "git config --type bool --get a.b c",
        "git config --global --list",
        "git config a.b",
        "git init",
        "git log --oneline",
    ] {
        check(&all, line, Allow);
    }
}

#[test]
fn c11_a_verb_that_is_not_known_may_publish_or_deploy() {
    let all = [Rule::new(Allow, Shell, None).unwrap()];
    for (line, clause) in [
        ("npm $(echo publish)", Clause::Publish),
        ("npm {publish,}", Clause::Publish),
        ("npm --prefix x $y", Clause::Publish),
        ("npm publ", Clause::Publish),
        ("xargs cargo", Clause::Publish),
        ("docker image $x", Clause::Publish),
        ("kubectl $x", Clause::Deploy),
        ("mvn clean $x", Clause::Deploy),
    ] {
        let judgement = judged(&all, line);
        let found = judgement
            .parts
            .iter()
            .any(|part| part.because == Because::Default { clause } || part.because == Because::Opaque);
        assert!(judgement.effect == Ask && found, "{line}: {judgement}");
    }
    for line in ["cargo test $x", "npm run $x", "npm test -- $x", "kubectl get $x", "uv run pytest $x"] {
        check(&all, line, Allow);
    }
    for line in ["docker image ls", "mvn clean test"] {
        check(&all, line, Allow);
    }
    check(&[all[0].clone(), Rule::new(Deny, Publish, None).unwrap()], "twine $x", Deny);
}

#[test]
fn c11_what_a_tool_launches_is_opened_up_and_judged_by_what_restricts() {
    let rules = [allow(Shell, "*"), allow(Network, "*"), deny(Shell, "rm *")];
    for line in [
        "uv run sh -c 'rm x'",
        "uv run env X=1 rm x",
        "npx timeout 5 rm x",
        "env uv run rm x",
        "npm x rm y",
        "npm exe rm y",
        "bunx rm x",
        "bun x rm y",
        "yarn dlx rm x",
        "pnpm dlx rm x",
        "uvx rm x",
        "uv run poetry run rm x",
        "uv run bash <<< 'rm x'",
    ] {
        check(&rules, line, Deny);
    }
    for line in [
        "npm x -- rm y",
        "mise x rm y",
        "mise x node@20 -- rm y",
        "nix develop -c rm x",
        "nix shell x -c rm y",
        "uv run --with a sh -c 'rm x'",
        "x=rm; uv run --with a $x y",
        "conda $(echo run) x y",
        "uv run $x y",
    ] {
        let effect = judged(&rules, line).effect;
        assert!(effect >= Ask, "{line}");
    }
    // What it does is no less than without the tool.
    let all = [allow(Shell, "*"), allow(Network, "*")];
    for (line, clause) in
        [("uv run git push origin x", Clause::GitPush), ("npx npm publish", Clause::Publish)]
    {
        assert_eq!(judged(&all, line).because, Because::Default { clause }, "{line}");
    }
    check(&[all[0].clone(), all[1].clone(), deny(Write, "keep/**")], "uv run cp a keep/b", Deny);
    check(&[all[0].clone(), deny(Shell, "rm *")], &format!("npx {}", "a ".repeat(2_000)), Allow);
    for line in ["uv run sh -c $'a'", "$'sh' -c a", "xargs -a b sh -c $'a'", "find . -exec sh -c $'a' \\;"] {
        check(&all, line, Ask);
    }
    assert_eq!(judged(&all, "curl x | direnv exec . python3").risk, Risk::High);
    // Beyond as many words as the options may take, what stands there is an argument; and npm refuses a verb of one letter.
    for line in ["uv run --quiet a b rm x", "npm e rm x"] {
        check(&[all[0].clone(), deny(Shell, "rm *")], line, Allow);
    }
}

#[test]
fn c11_a_shell_runs_what_stands_in_the_line_or_is_opaque() {
    for line in [
        "sh <<< a < b",
        "sh < b <<< a",
        "sh <<< a <<< b",
        "sh <<< a <&5",
        "sh <<< a 0<&5",
        "sh <<< a 00<b",
        "sh <<< a <> b",
        "sh 5<<< a",
        "sh 5<<E\na\nE",
        "sh <<E\na\nb\nE",
        "sh <<< $'a'",
        "sh -c $'a'",
        "eval $'a'",
        "trap $'a' EXIT",
        "bash //dev/stdin",
        "bash //dev/stdin <<< a",
        "bash ../../dev/stdin <<< a",
        "bash /dev/fd/0 <<< a",
        "bash -i -c a",
        "bash -k -c a",
        "bash -O extdebug -c a",
        "bash -o keyword -c a",
        "bash -rcfile a -c b",
        "bash -login -c a",
        "bash +O x -c a",
    ] {
        opening(line, Opening::Opaque);
    }
    opening("sh <<< a 2>b 5<c", Opening::Opened);
    opening("sh 0<<< a", Opening::Opened);
    opening("bash -o pipefail -c a", Opening::Opened);
    opening("bash dev/x.sh", Opening::Plain);
    for line in ["a | sh <<< b", "env sh -c $'a'"] {
        assert_eq!(parse(line).unwrap()[1].opening, Opening::Opaque, "{line}");
    }
    for line in ["cat <<$'E'\n$E\nrm x\nE", "[[ -n a && x -eq 0 ]]", "[[ a || b ]]", "[[\na ]]", "[[ a"] {
        assert_eq!(parse(line), Err(Unparsed::Construct), "{line}");
    }
    for line in ["trap -- '-x; rm y' EXIT", "trap '-x; rm y' EXIT"] {
        assert!(parse(line).unwrap().iter().any(|command| command.name() == Some("rm")), "{line}");
    }
    for line in ["trap -p EXIT", "trap - EXIT", "trap -- - EXIT"] {
        opening(line, Opening::Plain);
    }
}

#[test]
fn c11_a_file_that_is_called_like_a_wrapper_needs_a_rule_of_its_own() {
    let rules = [allow(Shell, "true"), deny(Shell, "rm *")];
    for program in ["env", "bash -c", "sh -c", "timeout 5", "nice", "xargs", "nohup"] {
        for place in ["./", "bin/", "../", "/tmp/", "/usr/bin/../../tmp/", "~/"] {
            check(&rules, &format!("{place}{program} true"), Ask);
            check(&rules, &format!("{place}{program} rm"), Deny);
        }
        for place in ["", "/bin/", "/usr/bin/", "/usr/local/bin/"] {
            check(&rules, &format!("{place}{program} true"), if program == "xargs" { Ask } else { Allow });
        }
    }
    check(&[allow(Shell, "true"), allow(Shell, "./env *")], "./env true", Allow);
}

#[test]
fn c11_whatever_env_takes_for_an_assignment_is_one() {
    let rules = [Rule::new(Allow, Shell, None).unwrap(), deny(Shell, "rm *")];
    for line in ["env 1=2 rm x", "env a-b=2 rm x", "env -S '1=2 rm x'", "sudo 1=2 rm x", "env =x rm y"] {
        check(&rules, line, Deny);
    }
    for line in [
        "env 'BASH_FUNC_a%%=() { b; }' c",
        "env 1=2 a",
        "env RIPGREP_CONFIG_PATH=x a",
        "MANOPT=x a",
        "PS1=x a",
    ] {
        check(&rules, line, Ask);
    }
    for line in
        ["export \"PATH=$x\"", "declare -x \"BASH_ENV=$x\"", "printf -vPATH x", "read -raPATH", "wait -pPATH"]
    {
        check(&rules, line, Ask);
    }
}
