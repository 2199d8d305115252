//! Builtins that run what they are told, and variables that change what runs.

use runyard_domain::gate::command::{Opening, parse};

#[track_caller]
fn check(line: &str, expected: Opening) {
    let parsed = parse(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    assert_eq!(parsed[0].opening, expected, "{line}");
}

#[test]
fn c11_a_builtin_that_is_told_a_command_is_opaque() {
    // Another name for a command, or a command to call.
    for line in ["alias a=b", "alias $x", "alias a b=c", "hash -p b a", "hash -rp b a", "enable -f b a"] {
        check(line, Opening::Opaque);
    }
    for line in
        ["mapfile -C b", "readarray -tC b", "compgen -C b", "complete -C b a", "bind -x b", "jobs -x b"]
    {
        check(line, Opening::Opaque);
    }
    for line in ["set -k", "set -ek", "set -o keyword", "fc -s b", "history -s b", "let x", "let x=1"] {
        check(line, Opening::Opaque);
    }
    for line in ["alias", "alias a", "hash -r", "hash p", "readarray x", "jobs", "jobs x", "set -e", "set k"]
    {
        check(line, Opening::Plain);
    }
    for line in ["echo '$(a)'", "printf '`a`' v", "echo $x"] {
        check(line, Opening::Plain);
    }
}

#[test]
fn c11_a_builtin_that_evaluates_a_name_or_an_index_is_opaque() {
    let names = ["read", "unset", "wait -p", "getopts a", "mapfile", "readarray -t", "printf -v"];
    for line in names {
        for told in ["'x[$(b)]'", "'x[`b`]'", "'`b`'", "'x[y]'", "x[y]", "$x", "\"$x\"", "PATH", "BASH_CMDS"]
        {
            check(&format!("{line} {told} a"), Opening::Opaque);
        }
        check(&format!("{line} x a"), Opening::Plain);
    }
    for line in
        ["wait $!", "wait \"$!\" $?", "read", "printf", "printf %s $x", "printf a -v 'x[y]'", "printf -v"]
    {
        check(line, Opening::Plain);
    }
    for line in ["printf $x", "printf \"$x\" a", "printf '-vx[y]' a"] {
        check(line, Opening::Opaque);
    }
    for line in ["declare", "typeset", "local", "readonly", "export"] {
        for told in [
            "'x[$(b)]=1'",
            "x='`b`'",
            "x[y]=1",
            "'x[y]=1'",
            "$x",
            "$x=1",
            "\"$x\"",
            "-i x",
            "-n x",
            "\"$x=1\"",
            "x=$y",
            "x+=$y",
            "x=a$y",
            "x=\"$y\"$z",
            "x=\"$@\"",
        ] {
            check(&format!("{line} {told}"), Opening::Opaque);
        }
        for told in ["", "x", "x=1", "x=\"$y\"", "x+=\"$y\"", "\"x=$y\"", "-r x", "+x x", "x='[a]'", "x=*"] {
            check(&format!("{line} {told}"), Opening::Plain);
        }
    }
}

#[test]
fn c11_a_test_that_evaluates_what_is_not_known_is_opaque() {
    for name in ["test", "[", "[["] {
        for told in [
            "-v 'x[$(b)]'",
            "-v 'x[`b`]'",
            "a = 'x[$(b)]'",
            "-v $x",
            "-v \"$x\"",
            "-v 'x[y]'",
            "-R $x",
            "\"$x\" -eq 1",
            "1 -ne \"$x\"",
            "x -lt 1",
            "1 -le x",
            "1 -gt x",
            "x -ge 1",
            "--1 -eq 1",
        ] {
            check(&format!("{name} {told}{}", if name == "[[" { " ]]" } else { "" }), Opening::Opaque);
        }
        for told in [
            "",
            "-v x",
            "-v x=1",
            "-n \"$x\"",
            "\"$x\" = \"a\"",
            "1 -eq -2",
            "$? -eq 0",
            "1 -lt \"$#\"",
            "-f a",
        ] {
            check(&format!("{name} {told}{}", if name == "[[" { " ]]" } else { "" }), Opening::Plain);
        }
    }
    // Here a word that expands can become an operator.
    for told in ["$x", "$x = a", "\"$x\" \"$y\"", "-f *.c", "\"$@\"", "\"$x\"$y\"\"", "\"$x\"$y", "$y\"$x\""]
    {
        check(&format!("test {told}"), Opening::Opaque);
        check(&format!("[ {told} ]"), Opening::Opaque);
        check(&format!("[[ {told} ]]"), Opening::Plain);
    }
    check("[ \"$x\" = a -a a = \"$y\" ]", Opening::Plain);
}

#[test]
fn c11_an_option_that_runs_a_command_makes_its_program_opaque() {
    for line in [
        "fd -x rm",
        "fd -HX rm",
        "fdfind --exec rm",
        "fd --exec-batch rm",
        "fd --exe rm",
        "tar -xf a --to-command=rm",
        "tar --checkpoint-action exec=rm",
        "gtar -I rm -cf a b",
        "bsdtar --use-compress-program rm",
        "tar -cMF rm a",
        "cpio --rsh-command=rm",
        "sort --compress-program rm",
        "split --filter=rm a",
        "split --f rm a",
        "git push --e=rm",
        "rsync -ae rm a b",
        "rg --pre rm a",
        "man -P rm a",
        "zip -T -TT rm a",
        "install -s --strip-program=rm a b",
        "wget --use-askpass=rm a",
        "nc -e rm a",
        "ncat --sh-exec rm a",
        "git bisect run rm",
        "git submodule --quiet foreach rm",
        "git filter-branch a",
        "git rebase -x rm",
        "git rebase --exec=rm a",
        "git difftool -yx rm",
        "git difftool --extcmd rm",
        "git grep -Orm a",
        "git clone --config a=b c",
        "git clone -u rm c",
        "git push --receive-pack=rm",
        "git archive --exec rm",
        "git fetch --upload-pack=rm",
    ] {
        check(line, Opening::Opaque);
    }
    for line in [
        "fd x",
        "fd --exclude x",
        "fd --",
        "fd x-x",
        "tar xf a",
        "tar -xf a --exclude b",
        "sort -r x",
        "rg --pre-glob x y",
        "git rebase main",
        "git log -x",
        "git log --exec",
        "git bisect good",
        "git run bisect",
        "git submodule update",
        "git grep -o x",
        "x --exec rm",
    ] {
        check(line, Opening::Plain);
    }
}

#[test]
fn c11_variables_that_change_what_runs_are_dangerous() {
    #[track_caller]
    fn dangerous(line: &str, expected: bool) {
        let parsed = parse(line).unwrap();
        assert_eq!(parsed.last().unwrap().assignments[0].is_dangerous(), expected, "{line}");
    }
    for name in [
        "PATH",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "BASH_ENV",
        "BASHOPTS",
        "BASH_CMDS",
        "ENV",
        "IFS",
        "GIT_SSH_COMMAND",
        "PYTHONPATH",
        "PAGER",
        "MANPAGER",
        "EDITOR",
        "SVN_EDITOR",
        "XDG_CONFIG_HOME",
        "RANDOM",
        "path",
    ] {
        dangerous(&format!("{name}=x a"), true);
    }
    dangerous("BASH_CMDS[1]=x a", true);
    for name in ["X", "PATHS", "RUST_LOG", "CI", "xLD_", "PAGERS", "RANDOMS"] {
        dangerous(&format!("{name}=x a"), false);
    }
    dangerous("X='a[$(rm x)]' a", true);
    dangerous("X='`rm x`' a", true);
    dangerous("X=$(rm x) a", false);
}
