//! Command lines, taken apart.

use proptest::prelude::*;
use runyard_domain::gate::command::{
    ARGUMENTS_MAX, DEPTH_MAX, LINE_CHARS_MAX, Opening, PARTS_MAX, SimpleCommand, Unparsed, Word, parse,
};

/// A command in one line: `?` before what expands, `!` before an opaque one, `<` before an opened one, `|` after a pipe.
fn shown(command: &SimpleCommand) -> String {
    let word = |word: &Word| match word {
        Word::Literal(text) => text.clone(),
        Word::Expanding(text) => format!("?{text}"),
    };
    let mut words = Vec::new();
    words.extend(command.piped.then(|| "|".to_owned()));
    words.extend(match command.opening {
        Opening::Plain => None,
        Opening::Opened => Some("<".to_owned()),
        Opening::Opaque => Some("!".to_owned()),
    });
    words.extend(command.assignments.iter().map(|set| format!("{}={}", set.name, word(&set.value))));
    words.extend(command.program.iter().chain(&command.arguments).map(word));
    words.extend(command.writes.iter().map(|path| format!(">{}", word(path))));
    words.extend(command.reads.iter().map(|path| format!("<{}", word(path))));
    words.join(" ")
}

#[track_caller]
fn check(line: &str, expected: &[&str]) {
    let parsed = parse(line).unwrap_or_else(|why| panic!("{line}: {why}"));
    assert_eq!(parsed.iter().map(shown).collect::<Vec<_>>(), expected, "{line}");
}

#[track_caller]
fn check_unparsed(line: &str, why: Unparsed) {
    assert_eq!(parse(line), Err(why), "{line}");
}

#[test]
fn c11_a_line_is_every_command_that_it_can_run() {
    check("", &[]);
    check("# only a comment", &[]);
    check("git status", &["git status"]);
    check("a && b", &["a", "b"]);
    check("a&&b||c;d&e", &["a", "b", "c", "d", "e"]);
    check("a | b |& c || d | e", &["a", "| b", "| c", "d", "| e"]);
    check("a\nb # c\n\nd", &["a", "b", "d"]);
    check("a \\\n b", &["a b"]);
    check("(a; b) && { c; d; }", &["a", "b", "c", "d"]);
    check("(a)", &["a"]);
    check("a | (b)", &["a", "b"]);
    check("if (a); then (b); fi", &["a", "b"]);
    check("! (a) && time (b)", &["a", "b"]);
    check("a | if b; then c; fi", &["a", "| b", "c"]);
    check("! a", &["a"]);
    check("time -p a -p", &["a -p"]);
    check("time a", &["a"]);
    check("time -- a -p", &["a -p"]);
    check("time -p -- a", &["a"]);
    check("time -- -p a", &["-p a"]);
    check("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]);
    check("while a; do b; done", &["a", "b"]);
    check("until a\ndo b\ndone", &["a", "b"]);
    check("for x in 1 $(a) 2; do b; done", &["a", "b"]);
    check("for x\ndo a; done", &["a"]);
    check("for x do a; done", &["a"]);
    check("for inner in 1; do a; done", &["a"]);
    check("for x in; do a; done", &["a"]);
    check("for x inner; do a; done", &["inner", "a"]);
    check("f() { a; }; f", &["a", "f"]);
    check("f () { a; }", &["a"]);
    check("function f { a; }", &["a"]);
    check("function f () { a; }", &["a"]);
    check("echo if then", &["echo if then"]);
    check("'if' a", &["if a"]);
    check("a#b #c", &["a#b"]);
}

#[test]
fn c11_a_continued_line_is_joined_before_it_is_read() {
    check("a\\\n b \\\nc\\\nd", &["a b cd"]);
    check("a &&\\\nb |\\\nc", &["a", "b", "| c"]);
    check("i\\\nf a; then\\\n b; f\\\ni", &["a", "b"]);
    check("f\\\nor x in 1; do a; done", &["a"]);
    check("tim\\\ne -p a", &["a"]);
    check("!\\\n a", &["a"]);
    check("{\\\n a; }", &["a"]);
    check("f\\\n() { a; }", &["a"]);
    check("X\\\n=1 Y=\\\n2 a", &["X=1 Y=2 a"]);
    check("a 2\\\n>x", &["a >x"]);
    check("cat <<E\\\nF\n$(a)\nEF\nb", &["cat", "a", "b"]);
    check("a \"x\\\ny\" # b \\\nc", &["a xy", "c"]);
    check("a 'x\\\ny'", &["a x\\\ny"]);
    check("a `b\\\nc`", &["bc", "a ?`bc`"]);
    check_unparsed("ca\\\nse x in x) a;; esac", Unparsed::Construct);
    // Here the shell sees the beginning of something, and what it begins could not be read.
    for line in [
        "a $\\\n(b)",
        "a \"$\\\n(b)\"",
        "a \"$\\\n{x:-$(b)}\"",
        "a $\\\n'b'",
        "a ${\\\n| b; }",
        "a $(\\\n( 1 # $(b)\n))",
        "(\\\n( 1 # $(b)\n))",
        "a <(\\\nb)",
        "a ${x:-<\\\n(b)}",
        "a <<\\\n-E\nE\nb\n-E\n",
        "a <\\\n<E\n$(b)\nE\n",
        "a >\\\n> b",
    ] {
        check_unparsed(line, Unparsed::Construct);
    }
}

#[test]
fn c11_substitutions_are_commands_too() {
    check("echo $(a b)", &["a b", "echo ?$(a b)"]);
    check("echo \"x $(a; b) y\"", &["a", "b", "echo ?\"x $(a; b) y\""]);
    check("echo `a b`", &["a b", "echo ?`a b`"]);
    check("echo \"`a \\\"b\\\"`\"", &["a b", "echo ?\"`a \\\"b\\\"`\""]);
    // Outside double quotes the escaped quote is an ordinary character.
    check("echo `a \\\"b c\\\"`", &["a \"b c\"", "echo ?`a \\\"b c\\\"`"]);
    check("a ${x:-`b \\\"c d\\\"`}", &["b \"c d\"", "a ?${x:-`b \\\"c d\\\"`}"]);
    check("echo `a \\`b\\``", &["b", "a ?`b`", "echo ?`a \\`b\\``"]);
    check("echo `a '\\n'`", &["a \\n", "echo ?`a '\\n'`"]);
    check("a <(b) >(c)", &["b", "c", "a ?<(b) ?>(c)"]);
    check("a x<(b)", &["b", "a ?x<(b)"]);
    check("a ${x:-$(b)}", &["b", "a ?${x:-$(b)}"]);
    check("a \"${x:-`b`}\"", &["b", "a ?\"${x:-`b`}\""]);
    check("a ${x:-'$(b)'\"$(c)\"\\}}", &["c", "a ?${x:-'$(b)'\"$(c)\"\\}}"]);
    check("$(a)", &["a", "! ?$(a)"]);
    check("x=$(a)", &["a", "x=?$(a)"]);
    check("a '$(b)' \\$\\(b\\)", &["a $(b) $(b)"]);
    check("a $((1 + (2 * 3)))", &["a ?$((1 + (2 * 3)))"]);
    check("a > $(b)", &["b", "a >?$(b)"]);
    check("a \"$'b'\" \"c$\"", &["a $'b' c$"]);
    check("a \"$$(b)\"", &["a ?\"$$(b)\""]);
    check("a ${x:-\\$(b)}", &["a ?${x:-\\$(b)}"]);
    check("a ${x:-'}'} ${x:-\"}\"} b", &["a ?${x:-'}'} ?${x:-\"}\"} b"]);
    check("and more $((1 + 2)) b", &["and more ?$((1 + 2)) b"]);
    for word in [
        "${x}",
        "${1}",
        "${10}",
        "${?}",
        "${#}",
        "${#x}",
        "${!}",
        "${@:1}",
        "${*}",
        "${x[1]}",
        "${x[@]}",
        "${x[*]:1}",
        "${#x[@]}",
        "${x:1}",
        "${x: -1:2}",
        "${x:-y}",
        "${x:+y}",
        "${x:?y}",
        "${x:=y}",
        "${x=y}",
        "${x-y}",
        "${x/y/@}",
        "${x%y}",
        "${x^^}",
        "${PATH:-x}",
        "${x_1}",
    ] {
        check(&format!("a {word}"), &[&format!("a ?{word}")]);
    }
    check("a ${x:-<(b)} ${x:-<b}", &["b", "a ?${x:-<(b)} ?${x:-<b}"]);
    check("a \"${x:-<(b)}\"", &["a ?\"${x:-<(b)}\""]);
}

#[test]
fn c11_words_lose_their_quotes_and_escapes() {
    check("\\rm \"a b\" 'c d' e\\ f", &["rm a b c d e f"]);
    check("'r'm r''m \"r\"m", &["rm rm rm"]);
    check("a \"x\\\"y\\z\\\\\" \"\\$b\" \"p\\\nq\"", &["a x\"y\\z\\ $b pq"]);
    check(
        "a $'\\x72\\155\\t\\u00e9\\\\' $'\\e\\a\\b\\f\\n\\r\\v\\?\\\"'",
        &["a rm\té\\ \u{1b}\u{7}\u{8}\u{c}\n\r\u{b}?\""],
    );
    check("a $'\\U0001F600' $'\\xff' $'\\q' $'\\0'", &["a 😀 ?$'\\xff' ?$'\\q' ?$'\\0'"]);
    check("a $ '$'", &["a $ $"]);
    check("a $x \"$x\" ${x} $1 $? $\"x\" ''", &["a ?$x ?\"$x\" ?${x} ?$1 ?$? ?$\"x\" "]);
    check("a *.md ?x [a] {b,c} {} ~/x x~ =y x=y", &["a ?*.md ??x ?[a] ?{b,c} {} ?~/x x~ ?=y x=y"]);
    check("a '*' \\? \"[\" \\~", &["a * ? [ ~"]);
    check("[ -f x ]", &["[ -f x ]"]);
    check("[[ -f x ]] && a", &["[[ -f x ]]", "a"]);
}

#[test]
fn c11_a_program_has_one_name_however_it_is_written() {
    #[track_caller]
    fn name(line: &str, expected: Option<&str>) {
        let parsed = parse(line).unwrap();
        assert_eq!(parsed[0].name(), expected, "{line}");
    }
    name("/usr/bin/rm x", Some("rm"));
    name("\\rm x", Some("rm"));
    name("\"r\"m x", Some("rm"));
    name("./x.sh", Some("x.sh"));
    name("$X y", None);
    name("X=1", None);
}

#[test]
fn c11_redirections_that_write_are_known() {
    check("a > x", &["a >x"]);
    check("a >> x 2> y", &["a >x >y"]);
    check("a >| x <> y", &["a >x >y <y"]);
    check("a &> x", &["a >x"]);
    check("a &>> x", &["a >x"]);
    check("a >& x", &["a >x"]);
    check("a 2>&1 >&2 <&3 >&- 3>&4-", &["a"]);
    check("a > /dev/null 2>/dev/stderr >/dev/fd/3 >/dev/stdout", &["a"]);
    check("a > /dev/fd/../x", &["a >/dev/fd/../x"]);
    check("a < x", &["a <x"]);
    check("a > $x b", &["a b >?$x"]);
    check("> x", &[">x"]);
    check("{ a; } > x", &["a", ">x"]);
    check("(a) > x", &["a", ">x"]);
    check("for i in 1; do a; done >> x", &["a", ">x"]);
    check("a '2'>x", &["a 2 >x"]);
    check("a {b>x b}>y", &["a ?{b ?b} >x >y"]);
    check("2>x a", &["a >x"]);
    check("&> x", &[">x"]);
}

#[test]
fn c11_assignments_before_a_command_are_kept() {
    check("X=1 Y+=2 a", &["X=1 Y=2 a"]);
    check("X=\"a b\" a X=2", &["X=a b a X=2"]);
    check("X=$y a", &["X=?$y a"]);
    check("X[1]=2 a", &["X=?2 a"]);
    check("1X=2", &["1X=2"]);
    check("'X=1' a", &["X=1 a"]);
    for (line, program) in [
        ("'X=1' a", "X=1"),
        ("1X=2 a", "1X=2"),
        ("X-Y=2 a", "X-Y=2"),
        ("=2 a", "=2"),
        ("X[1=2 a", "X[1=2"),
        ("_X1=2 a", "a"),
        ("X[1]=2 a", "a"),
    ] {
        assert_eq!(parse(line).unwrap()[0].program.as_ref().map(Word::text), Some(program), "{line}");
    }
    check_unparsed("X=(1 2)", Unparsed::Construct);
}

#[test]
fn c11_here_documents_are_read() {
    check("cat <<EOF\n$(a)\n`b`\nEOF\nc", &["cat", "a", "b", "c"]);
    check("cat <<'EOF'\n$(a)\nEOF", &["cat"]);
    check("cat <<-EOF\n\t\tx\n\tEOF\na", &["cat", "a"]);
    check("cat <<A <<B\n1\nA\n2\nB\na", &["cat", "a"]);
    check("cat <<EOF 'a b' \"c\" `d` \\\n e\n$(a)\nEOF", &["d", "cat a b c ?`d` e", "a"]);
    check("sh <<EOF\nrm x\nEOF", &["< sh", "rm x"]);
    check("sh <<'EOF' | a\nrm $x\nEOF", &["< sh", "rm ?$x", "| a"]);
    check("sh <<EOF\nrm \\$x\nEOF", &["< sh", "rm ?$x"]);
    check("sh <<EOF\nrm $x\nEOF", &["! sh"]);
    check("bash -s <<'EOF'\nrm x\nEOF", &["< bash -s", "rm x"]);
    check("sudo sh <<'EOF'\nrm x\nEOF", &["sudo sh", "< sh", "rm x"]);
    check("sh <<< 'rm x'", &["< sh", "rm x"]);
    check("sh <<< $x", &["! sh"]);
    check("bash /dev/stdin <<< 'rm x'", &["< bash /dev/stdin", "rm x"]);
    check("(cat <<EOF\n$(a)\nEOF\n)", &["cat", "a"]);
    check_unparsed("cat <<EOF\nx", Unparsed::Unfinished);
    check_unparsed("cat <<EOF", Unparsed::Unfinished);
    check_unparsed("cat <<$x\n", Unparsed::Construct);
    check_unparsed("cat <<EOF\nEO\\\nF\nEOF\n", Unparsed::Construct);
    check_unparsed("cat <<EOF 'a\nb'\nEOF\n", Unparsed::Construct);
    check_unparsed("cat <<EOF $(a\nb)\nEOF\n", Unparsed::Construct);
    check_unparsed("a $(cat <<EOF)\nEOF\n", Unparsed::Unfinished);
}

#[test]
fn c11_wrappers_are_opened_up() {
    check("sh -c 'rm x'", &["< sh -c rm x", "rm x"]);
    check("bash -lc \"rm x\"", &["< bash -lc rm x", "rm x"]);
    check("/bin/bash -l -c 'a; b' name", &["< /bin/bash -l -c a; b name", "a", "b"]);
    check("bash -o pipefail -euc 'a' -- b", &["< bash -o pipefail -euc a -- b", "a"]);
    check("bash --norc -c -- a", &["< bash --norc -c -- a", "a"]);
    check("zsh -c a", &["< zsh -c a", "a"]);
    check("sh -c \"$x\"", &["! sh -c ?\"$x\""]);
    check("sh -c", &["! sh -c"]);
    check("sh", &["! sh"]);
    check("sh < x", &["! sh <x"]);
    check("sh x.sh -c y", &["sh x.sh -c y"]);
    check("sh $x", &["! sh ?$x"]);
    check("bash --rcfile x -c a", &["! bash --rcfile x -c a"]);
    check("echo a | sh", &["echo a", "| ! sh"]);
    check("env X=Y rm x", &["< env X=Y rm x", "X=Y rm x"]);
    check("env -i -u A PATH=/x rm x", &["< env -i -u A PATH=/x rm x", "PATH=/x rm x"]);
    check("env - rm", &["< env - rm", "rm"]);
    check("env -S 'X=1 rm -f' x", &["< env -S X=1 rm -f x", "X=1 rm -f x"]);
    check("env --split-string='rm x'", &["< env --split-string=rm x", "rm x"]);
    check("env --unset A rm", &["< env --unset A rm", "rm"]);
    check("env -- X=1 rm", &["< env -- X=1 rm", "X=1 rm"]);
    check("env -- -i rm", &["< env -- -i rm", "-i rm"]);
    check("env -S 'a\\_b'", &["! env -S a\\_b"]);
    check("env -C / rm", &["! env -C / rm"]);
    check("env --chdir=/ rm", &["! env --chdir=/ rm"]);
    check("env $x rm", &["! env ?$x rm"]);
    check("env", &["env"]);
    check("Y=1 nohup nice -n 5 rm x", &["< Y=1 nohup nice -n 5 rm x", "< Y=1 nice -n 5 rm x", "Y=1 rm x"]);
    check("nice -5 rm", &["< nice -5 rm", "rm"]);
    check("nice -n5 rm", &["< nice -n5 rm", "rm"]);
    check("timeout -k 1 -s KILL 5 rm x", &["< timeout -k 1 -s KILL 5 rm x", "rm x"]);
    check("timeout --signal=9 5s rm", &["< timeout --signal=9 5s rm", "rm"]);
    check("timeout $t rm", &["! timeout ?$t rm"]);
    check("timeout 5", &["timeout 5"]);
    check("timeout -k", &["! timeout -k"]);
    check("sudo -u root -- rm x", &["sudo -u root -- rm x", "rm x"]);
    check("sudo -e x", &["! sudo -e x"]);
    check("doas rm", &["doas rm", "rm"]);
    check("exec -a n rm", &["< exec -a n rm", "rm"]);
    check("exec > x", &["exec >x"]);
    check("command rm", &["< command rm", "rm"]);
    check("command -p rm", &["< command -p rm", "rm"]);
    check("command -v rm", &["command -v rm"]);
    check("builtin eval 'rm x'", &["< builtin eval rm x", "< eval rm x", "rm x"]);
    check("stdbuf -oL rm", &["< stdbuf -oL rm", "rm"]);
    check("setsid -w rm", &["< setsid -w rm", "rm"]);
    check("/usr/bin/time -v rm", &["< /usr/bin/time -v rm", "rm"]);
    check("busybox rm x", &["< busybox rm x", "rm x"]);
    check("nice - rm", &["< nice - rm", "< - rm", "rm"]);
    check("a | nohup rm < x", &["a", "| < nohup rm <x", "| rm <x"]);
    check("sudo X=1 rm", &["sudo X=1 rm", "X=1 rm"]);
    check("bash -s -e x <<< 'rm y'", &["< bash -s -e x", "rm y"]);
    check("eval rm 'x y'", &["< eval rm x y", "rm x y"]);
    check("eval -- 'a && b'", &["< eval -- a && b", "a", "b"]);
    check("eval $x", &["! eval ?$x"]);
    check("trap 'rm x' EXIT", &["< trap rm x EXIT", "rm x"]);
    check("trap -- 'rm x' EXIT", &["< trap -- rm x EXIT", "rm x"]);
    check("trap - EXIT", &["trap - EXIT"]);
    check("trap EXIT", &["trap EXIT"]);
    check("trap $x", &["! trap ?$x"]);
    check("trap -- $x", &["! trap -- ?$x"]);
    check(". ./x", &[". ./x"]);
    check("source <(a)", &["a", "! source ?<(a)"]);
    check("source /dev/stdin", &["! source /dev/stdin"]);
    check("parallel rm ::: x", &["! parallel rm ::: x"]);
    check("su -c 'rm x'", &["! su -c rm x"]);
    check("sh -c \"sh -c 'rm x'\"", &["< sh -c sh -c 'rm x'", "< sh -c rm x", "rm x"]);
    check("a > x sh -c b", &["a sh -c b >x"]);
    check("sh -c a > x", &["< sh -c a >x", "a"]);
}

#[test]
fn c11_every_option_of_a_wrapper_is_passed_over() {
    #[track_caller]
    fn check(program: &str, options: &[&str], expected: &str) {
        for option in options {
            let parsed = parse(&format!("{program} {option} rm x")).unwrap();
            assert_eq!(parsed.len(), 2, "{program} {option}");
            assert_eq!(shown(&parsed[1]), expected, "{program} {option}");
        }
    }
    for name in ["command", "builtin", "nohup", "gnohup", "noglob", "nocorrect", "-", "busybox", "toybox"] {
        check(name, &["", "-p", "--"], "rm x");
    }
    check("exec", &["-c", "-l", "-cl", "-a n", "-an"], "rm x");
    check("env", &["-i", "-0", "-v", "-i0v", "-u A", "-uA", "-", "-S ''"], "rm x");
    check("env", &["--ignore-environment", "--null", "--debug", "--unset A", "--unset=A"], "rm x");
    check("env", &["A=1", "-i A=1", "--split-string 'A=1'", "-S A=1"], "A=1 rm x");
    check("nice", &["", "-5", "-19", "-n 5", "-n5", "--adjustment 5", "--adjustment=5"], "rm x");
    for name in ["timeout", "gtimeout"] {
        check(name, &["5", "-f 5", "-p 5", "-v 5", "-fpv 5", "-k 1 5", "-s KILL 5", "-- 5"], "rm x");
        check(name, &["--foreground 5", "--preserve-status 5", "--verbose 5"], "rm x");
        check(name, &["--kill-after 1 5", "--kill-after=1 5", "--signal KILL 5"], "rm x");
    }
    check("/usr/bin/time", &["", "-p", "-v", "--portability", "--verbose"], "rm x");
    check("stdbuf", &["-i0", "-o L", "-e0", "--input 0", "--output=L", "--error 0"], "rm x");
    check("setsid", &["", "-c", "-f", "-w", "--ctty", "--fork", "--wait"], "rm x");
    check("ionice", &["-t", "-c 3", "-n7", "-c2 -n 7 -t"], "rm x");
    for name in ["sudo", "doas"] {
        check(name, &["", "-A", "-b", "-E", "-H", "-k", "-n", "-P", "-S", "-L", "-s", "-nE"], "rm x");
        check(name, &["-u root", "-g g", "-p x", "-C 3", "-U u", "-a t", "-nuroot", "-"], "rm x");
        check(
            name,
            &["--preserve-env", "--non-interactive", "--set-home", "--stdin", "--background"],
            "rm x",
        );
        check(name, &["--user root", "--user=root", "--group g", "--prompt x"], "rm x");
    }
    for name in ["xargs", "gxargs"] {
        check(name, &["", "-0", "-r", "-t", "-p", "-o", "-x", "-0rt"], "rm x ?…");
        check(name, &["-n 1", "-P2", "-L 1", "-s 9", "-d ,", "-a f", "-E end"], "rm x ?…");
        check(name, &["--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit"], "rm x ?…");
        check(name, &["--max-args 1", "--max-procs=2", "--delimiter ,", "--arg-file f"], "rm x ?…");
        check(name, &["--max-chars 9"], "rm x ?…");
        check(name, &["-I %", "-I%", "-J %"], "rm x");
    }
}

#[test]
fn c11_xargs_and_find_run_what_they_name() {
    check("X=1 xargs a", &["< X=1 xargs a", "X=1 a ?…"]);
    check("X=1 find . -exec a \\;", &["X=1 find . -exec a ;", "X=1 a"]);
    check("a | xargs rm -f", &["a", "| < xargs rm -f", "rm -f ?…"]);
    check("xargs -0 -n1 rm", &["< xargs -0 -n1 rm", "rm ?…"]);
    check("xargs -I{} mv {} x", &["< xargs -I{} mv {} x", "mv ?… x"]);
    check("xargs -I % sh -c 'rm %'", &["< xargs -I % sh -c rm %", "! sh -c ?rm …"]);
    check("xargs -I rm rm", &["< xargs -I rm rm", "! ?…"]);
    check("xargs sh -c 'rm x'", &["< xargs sh -c rm x", "< sh -c rm x ?…", "rm x"]);
    check("xargs", &["xargs"]);
    check("xargs --weird rm", &["! xargs --weird rm"]);
    check("find . -exec rm {} +", &["find . -exec rm {} +", "rm ?{}"]);
    check(
        "find . -name x -exec a {} \\; -execdir b \\;",
        &["find . -name x -exec a {} ; -execdir b ;", "a ?{}", "b"],
    );
    check("find . -ok a", &["find . -ok a", "a"]);
    check("find . -okdir a", &["find . -okdir a", "a"]);
    check("find . -exec", &["find . -exec"]);
    check("find . -exec env -u + a \\;", &["find . -exec env -u + a ;", "< env -u + a", "a"]);
    check("find . -exec a {} + -exec b \\;", &["find . -exec a {} + -exec b ;", "a ?{}", "b"]);
    check("find $x -exec a \\;", &["! find ?$x -exec a ;", "a"]);
    check("find . -name *.md", &["! find . -name ?*.md"]);
    check("xargs find .", &["< xargs find .", "! find . ?…"]);
    check("find . -exec sh -c 'rm x' \\;", &["find . -exec sh -c rm x ;", "< sh -c rm x", "rm x"]);
}

#[test]
fn c11_what_is_not_understood_is_said() {
    for line in ["case x in a) rm;; esac", "((x))", "a (b)", "a;;b", "a $[1]", ")", "for ((;;)); do a; done"]
    {
        check_unparsed(line, Unparsed::Construct);
    }
    for line in [
        "a \"${x:-'}\"",
        "a ${ b; }",
        "a ${| b; }",
        "a $'x\\'y'",
        "a \"${x:-${y}'}\"",
        "a $((x[$(b)]))",
        "a $(($(b)))",
        "a $((${b}))",
        "a $$(b)",
        "a $((b) )",
        "a >",
        "a > ;",
        "coproc a",
        "coproc a { b; }",
        "coproc a (b)",
    ] {
        check_unparsed(line, Unparsed::Construct);
    }
    // What stands in a variable is evaluated, and can run anything.
    for word in [
        "$((x))",
        "$((1 + $x))",
        "$((1 + $1))",
        "${#x[y]}",
        "${x[y]}",
        "${x[$y]}",
        "${x[1}",
        "${x:y}",
        "${x:$y}",
        "${x:1:y}",
        "${!x}",
        "${!1}",
        "${x@P}",
        "${x[@]@P}",
        "${@@P}",
        "${x['1']}",
        "${PATH:=y}",
        "${PATH=y}",
        "${GIT_X:=y}",
        "${^x}",
        "${}",
        "${x\\\n@P}",
    ] {
        check_unparsed(&format!("a {word}"), Unparsed::Construct);
        check_unparsed(&format!("a \"{word}\""), Unparsed::Construct);
    }
    for line in ["x[y]=1", "x[$y]=1 a", "x[\"1\"]=1", "x[y]+=1", "a {x[y]}>z", "a {x}>z"] {
        check_unparsed(line, Unparsed::Construct);
    }
    // Another program of that name runs, or another file is written, than what stands there.
    for line in ["for PATH in x; do a; done", "select BASH_CMDS in x; do a; done", "a >!x", "a >>!x"] {
        check_unparsed(line, Unparsed::Construct);
    }
    // A program `time` has options of its own, and some shells end a group or a test without a separator.
    for line in
        ["time -o x a", "time -v a", "time -p -p a", "if [[ x ]] { a }", "{ a } b", "a { b", "x=1 a }"]
    {
        check_unparsed(line, Unparsed::Construct);
    }
    check("a '}' \\{ {}", &["a } { {}"]);
    check("[[ a ]]", &["[[ a ]]"]);
    check("[ a ]] b", &["[ a ]] b"]);
    // A shell that does not know `&>` runs `b` here.
    check_unparsed("a &> x b", Unparsed::Construct);
    check_unparsed("&> x b", Unparsed::Construct);
    check_unparsed("a $((1$", Unparsed::Construct);
    check_unparsed("a >& '$(b)'", Unparsed::Construct);
    check_unparsed("a >& '`b`'", Unparsed::Construct);
    // Some shells take `\"` in backticks for a quote here, and some do not.
    check_unparsed("a \"${x:-`b \\\"c\\\"`}\"", Unparsed::Construct);
    check_unparsed("a \"${x:-${y:-`b \\\"c\\\"`}}\"", Unparsed::Construct);
    check_unparsed("a <<E\n`b \\\"c\\\"`\nE", Unparsed::Construct);
    // One shell runs `b` here, and another writes `-b`.
    check_unparsed("a >&-b", Unparsed::Construct);
    check_unparsed("<&-b c", Unparsed::Construct);
    check("a &> x 2>&1 > y", &["a >x >y"]);
    check_unparsed("[[ a =~ # ]]; rm x", Unparsed::Construct);
    for line in ["'", "\"", "a `b", "a $(b", "(a", "a \\", "a ${b", "a $((1", "sh -c '\"'", "a $'b"] {
        check_unparsed(line, Unparsed::Unfinished);
    }
    for line in ["a\0", "a\rb", "a \u{1b}[1m", "sh -c $'a\\rb'"] {
        check_unparsed(line, Unparsed::ControlCharacter);
    }
}

#[test]
fn c11_a_line_has_limits() {
    let long = |chars: usize| format!("a {}", "é".repeat(chars - 2));
    assert!(parse(&long(LINE_CHARS_MAX)).is_ok());
    check_unparsed(&long(LINE_CHARS_MAX + 1), Unparsed::TooLong);

    let many = |parts: usize| "a;".repeat(parts);
    assert_eq!(parse(&many(PARTS_MAX)).map(|parts| parts.len()), Ok(PARTS_MAX));
    check_unparsed(&many(PARTS_MAX + 1), Unparsed::TooMany);
    check_unparsed(&format!("sh -c '{}'", many(PARTS_MAX)), Unparsed::TooMany);

    let wide = |arguments: usize| format!("a{}", " b".repeat(arguments));
    assert!(parse(&wide(ARGUMENTS_MAX)).is_ok());
    check_unparsed(&wide(ARGUMENTS_MAX + 1), Unparsed::TooMany);

    let nested = |depth: usize| format!("{}a{}", "(".repeat(depth).replace('(', "( "), ")".repeat(depth));
    assert!(parse(&nested(DEPTH_MAX - 1)).is_ok());
    check_unparsed(&nested(DEPTH_MAX), Unparsed::TooDeep);
    check_unparsed(&format!("a {}x{}", "${b-".repeat(DEPTH_MAX), "}".repeat(DEPTH_MAX)), Unparsed::TooDeep);
    let braces = DEPTH_MAX - 1;
    assert!(parse(&format!("a {}x{}", "${b-".repeat(braces), "}".repeat(braces))).is_ok());
    assert!(parse(&format!("{}a", "env ".repeat(DEPTH_MAX - 1))).is_ok());
    check_unparsed(&format!("{}a", "env ".repeat(DEPTH_MAX)), Unparsed::TooDeep);
    assert!(parse(&format!("{}a", "eval ".repeat(DEPTH_MAX - 1))).is_ok());
    check_unparsed(&format!("{}a", "eval ".repeat(DEPTH_MAX)), Unparsed::TooDeep);
    // What was left is not counted.
    assert!(parse(&"(a);${b};$(c);".repeat(50)).is_ok());
}

#[test]
fn c11_a_command_is_shown_as_it_runs() {
    let shown: Vec<String> = parse("X=1 'a' \"b c\" > d").unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["X=1 a b c > d"]);
}

fn shellish() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "rm",
        " ",
        "\n",
        ";",
        "&",
        "|",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "$",
        "`",
        "'",
        "\"",
        "\\",
        "#",
        "<<E\n",
        "E",
        "\nE\n",
        "$(",
        "${",
        "$((",
        "))",
        "$'",
        "sh -c ",
        "env ",
        "xargs ",
        "find -exec ",
        "eval ",
        "for x in ",
        "if ",
        "case ",
        "é",
        "=",
        "[",
        "*",
        "~",
        "2>",
        "&>",
        "-",
        "--",
        "timeout 1 ",
        "\t",
        "\u{0}",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn c11_parsing_never_panics(line in ".{0,200}") {
        let _ = parse(&line);
    }

    #[test]
    fn c11_parsing_never_panics_on_what_looks_like_a_command(line in shellish()) {
        let _ = parse(&line);
    }

    #[test]
    fn c11_a_quoted_word_is_itself(word in "[^'\\x00-\\x1f\\x7f-\\x9f]{1,30}") {
        let parsed = parse(&format!("a '{word}'")).unwrap();
        prop_assert_eq!(&parsed[0].arguments, &[Word::Literal(word)]);
    }

    #[test]
    fn c11_what_is_added_to_a_line_is_found_or_the_line_is_not_understood(line in shellish()) {
        // A comment, a here-document or a construct may take the rest in; a new line and its end are put around it.
        if let (Ok(before), Ok(after)) = (parse(&line), parse(&format!("{line}\nmarker x"))) {
            prop_assert_eq!(&after[..before.len().min(after.len())], &before[..]);
            prop_assert_eq!(after.last().and_then(SimpleCommand::name).map(str::to_owned), Some("marker".to_owned()));
        }
    }
}
