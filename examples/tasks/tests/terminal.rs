//! What is different on a terminal: text instead of JSON, colours, and a question instead of a refusal.
//!
//! clause: A04
//! clause: A21

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use support::Program;

fn with_a_task() -> Program {
    let program = Program::new();
    program.run(["task-create", "--title", "Buy milk"]).data();
    program
}

#[test]
fn a_person_gets_text_and_a_pipe_gets_the_envelope() {
    let program = with_a_task();
    let (exit, screen) = program.on_terminal(&[], "tasks task-list").end();
    assert_eq!(exit, 0);
    assert!(screen.contains("ID  TITLE     PRIORITY  TAGS  DONE\n"), "{screen}");
    let (_, screen) = program.on_terminal(&[], "tasks task-list | cat").end();
    assert!(screen.starts_with("{\n  \"ok\": true,"), "{screen}");
    let (_, screen) = program.on_terminal(&[], "tasks task-list --output json").end();
    assert!(screen.starts_with("{\n  \"ok\": true,"), "{screen}");
    let (exit, screen) = program.on_terminal(&[], "tasks task-list --limit 0").end();
    assert_eq!(exit, 2);
    assert!(screen.contains("limit: Expected value >= 1."), "{screen}");
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let program = with_a_task();
    let coloured = |variables: &[(&str, &str)], command: &str| {
        program.on_terminal(variables, command).end().1.contains("\u{1b}[")
    };
    for command in ["tasks nosuch", "tasks task-create --help"] {
        assert!(coloured(&[], command), "{command}");
        assert!(coloured(&[("NO_COLOR", "")], command), "an empty NO_COLOR says nothing");
        assert!(!coloured(&[("NO_COLOR", "1")], command), "{command}");
        assert!(!coloured(&[], &format!("{command} 2>&1 | cat")), "{command}");
    }
    assert!(!coloured(&[], "tasks nosuch --output json"));
}

#[test]
fn a04_yes_to_the_question_confirms() {
    for answer in ["y", "Y", "yes"] {
        let program = with_a_task();
        let mut terminal = program.on_terminal(&[], "tasks task-delete --id t1");
        terminal.expect("with {\"id\":\"t1\"}? [y/N] ").keys(&format!("{answer}\n"));
        let (exit, screen) = terminal.end();
        assert_eq!(exit, 0, "{screen}");
        assert!(screen.contains("title     Buy milk"), "{screen}");
        assert!(program.stored().is_empty());
    }
}

#[test]
fn a04_anything_else_does_not_confirm() {
    for answer in ["n\n", "\n", "yep\n", "\u{4}"] {
        let program = with_a_task();
        let mut terminal = program.on_terminal(&[], "tasks task-delete --id t1");
        terminal.expect("[y/N] ").keys(answer);
        let (exit, screen) = terminal.end();
        assert_eq!(exit, 1, "{screen}");
        assert!(screen.contains("CONFIRMATION_REQUIRED"), "{screen}");
        assert_eq!(program.stored().len(), 1);
    }
}

#[test]
fn a21_ctrl_c_at_the_question_cancels() {
    let program = with_a_task();
    let mut terminal = program.on_terminal(&[], "tasks task-delete --id t1");
    terminal.expect("[y/N] ").keys("\u{3}");
    let (exit, screen) = terminal.end();
    assert_eq!(exit, 130, "{screen}");
    assert!(screen.contains("CANCELLED"), "{screen}");
    assert_eq!(program.stored().len(), 1);
}

#[test]
fn a04_nobody_is_asked_where_nobody_can_answer() {
    let program = with_a_task();
    for command in [
        "tasks task-delete --id t1 --output json",
        "tasks task-delete --id t1 </dev/null",
        "tasks task-delete --id t1 2>/dev/null",
        "tasks task-delete --id t1 | cat; exit 1",
    ] {
        let (exit, screen) = program.on_terminal(&[], command).end();
        assert_eq!((exit, screen.contains("[y/N]")), (1, false), "{command}: {screen}");
    }
    let (exit, screen) = program.on_terminal(&[], "tasks task-delete --id t1 --confirm").end();
    assert_eq!((exit, screen.contains("[y/N]")), (0, false), "{screen}");
}

#[test]
fn a_question_shows_what_is_asked_and_nothing_that_a_terminal_obeys() {
    let program = with_a_task();
    let mut terminal = program.on_terminal(&[("ID", "\u{1b}[2J\u{202e}x")], "tasks task-delete --id \"$ID\"");
    terminal.expect("[y/N] ").keys("n\n");
    let (_, screen) = terminal.end();
    assert!(!screen.contains("\u{1b}[2J") && !screen.contains('\u{202e}'), "{screen:?}");
}

#[test]
fn json_on_a_terminal_is_the_same_json_without_what_it_obeys() {
    let program = Program::new();
    let nasty = "\u{7f}\u{9b}2J\u{202e}x";
    program.run(["task-create", "--title", nasty]).data();
    for command in [
        "tasks task-list --output json",
        "tasks task-list --output ndjson",
        "echo '{\"action\":\"task_list\"}' | tasks json",
    ] {
        let (_, screen) = program.on_terminal(&[], command).end();
        assert!(screen.contains("\\u007f\\u009b2J\\u202ex"), "{command}: {screen:?}");
        assert!(!screen.contains(['\u{7f}', '\u{9b}', '\u{202e}']), "{command}: {screen:?}");
        let (_, piped) = program.on_terminal(&[], &format!("{command} | cat")).end();
        assert!(piped.contains(nasty), "{command}: a pipe gets the bytes as they are: {piped:?}");
    }
}
