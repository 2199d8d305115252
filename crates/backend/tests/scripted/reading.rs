//! How a script is read.

use runyard_backend::conformance::PlainProcesses;
use runyard_backend::scripted::{Problem, STEPS_MAX};
use runyard_backend::{Backend, Script, ScriptError, ScriptedBackend};

use crate::bench::{profile, scripts};

fn refused(text: &str) -> ScriptError {
    match Script::read(text) {
        Ok(script) => panic!("it reads as {script:?}"),
        Err(error) => error,
    }
}

#[test]
fn an_unknown_key_is_an_error_with_its_line() {
    let error = refused("[[turn]]\n[[turn.step]]\nsay = \"hello\"\nlouder = true\n");
    assert!(matches!(error, ScriptError::Syntax { line: 4, .. }), "{error:?}");
    assert!(error.to_string().starts_with("line 4 of the script: unknown field `louder`"), "{error}");

    for (text, line) in [
        ("[[turns]]\n", 1),
        ("[[turn]]\nstep = 3\n", 2),
        ("[[turn]]\n\n[[turn.step]]\nfail = \"no-such-kind\"\nmessage = \"\"\n", 4),
        ("[[turn]]\n[[turn.step]]\nsay = \"hello\n", 3),
    ] {
        let error = refused(text);
        assert!(matches!(error, ScriptError::Syntax { line: at, .. } if at == line), "{text}: {error:?}");
    }
}

#[test]
fn a_step_that_makes_no_sense_is_an_error_with_its_line() {
    use Problem as P;
    for (step, problem) in [
        ("repeat = 2", P::NotOneThing),
        ("say = \"a\"\nshell = \"b\"", P::NotOneThing),
        ("wait_for_command = false", P::NotOneThing),
        ("say = \"a\"\nidempotent = true", P::Stray("idempotent")),
        ("shell = \"a\"\ncontent = \"b\"", P::Stray("content")),
        ("write = \"a\"", P::Missing("content")),
        ("ask = \"a\"", P::Missing("schema")),
        ("fail = \"backend-failed\"", P::Missing("message")),
        ("block = \"no_such_code\"\nmessage = \"a\"", P::UnknownCode),
        ("say = \"a\"\nrepeat = 0", P::OutOfRange("repeat")),
        ("deltas = 0", P::OutOfRange("deltas")),
        ("deltas = 100000", P::OutOfRange("deltas")),
        ("write = \"a/../b\"\ncontent = \"\"", P::OutOfRange("write")),
        ("read = \"..\"", P::OutOfRange("read")),
    ] {
        match refused(&format!("# first\n[[turn]]\n[[turn.step]]\n{step}\n")) {
            ScriptError::Step { line, problem: found } => assert_eq!((line, found), (3, problem), "{step}"),
            other => panic!("{step}: {other:?}"),
        }
    }
}

#[test]
fn a_script_has_a_turn_and_not_too_many_steps() {
    assert!(matches!(refused(""), ScriptError::Empty));
    let many = format!("[[turn]]\n[[turn.step]]\nsay = \"a\"\nrepeat = {STEPS_MAX}\n");
    assert_eq!(Script::read(&many).unwrap().size(), (1, STEPS_MAX));
    let more = format!("{many}[[turn.step]]\nsay = \"b\"\n");
    assert!(matches!(refused(&more), ScriptError::TooLarge { what: "steps", .. }));
    assert!(matches!(refused(&" ".repeat(300 * 1024)), ScriptError::TooLarge { what: "bytes", .. }));
}

#[tokio::test]
async fn a_profile_names_its_script_or_the_file_of_one() {
    let backend = ScriptedBackend::new(scripts());
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "[[turn]]\n[[turn.step]]\nsay = \"a\"\nrepeat = 3\n").unwrap();
    let path = file.path().to_str().unwrap();
    let probe = PlainProcesses::probe();
    let found = backend.check(&profile(&[("script", "shortest")]), &probe).await.unwrap();
    assert_eq!(found, "script shortest: 1 turn, 1 step");
    let found = backend.check(&profile(&[("scriptFile", path)]), &probe).await.unwrap();
    assert!(found.ends_with(": 1 turn, 3 steps"), "{found}");
    #[rustfmt::skip]
    let refused = [
        (vec![],                                      "say which script: either \"script\" or \"scriptFile\""),
        (vec![("script", "demo"), ("scriptFile", path)], "say which script: either \"script\" or \"scriptFile\""),
        (vec![("script", "none")],                    "there is no script \"none\"; there are act, chatter, demo, linger, shortest, talk"),
        (vec![("scriptFile", "/no/such/file")],       "cannot read the script /no/such/file: No such file or directory (os error 2)"),
        (vec![("scripts", "demo")],                   "a scripted backend knows no setting \"scripts\""),
    ];
    for (settings, message) in refused {
        assert_eq!(backend.check(&profile(&settings), &probe).await.unwrap_err().to_string(), message);
    }
}
