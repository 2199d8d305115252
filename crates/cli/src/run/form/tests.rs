//! What the lines of a person mean as the answer to a question.

use super::*;

fn form(prompt: &str, schema: Value) -> Form {
    let request = json!({"kind": "question", "prompt": prompt, "answerSchema": schema});
    Form::of(&json!({ "request": request })).unwrap()
}

fn colour() -> Form {
    let choice = json!({"type": "string", "title": "Colour", "description": "Which one?", "enum": ["Red (Recommended)", "Blue"]});
    form(
        "Colour: Which one?",
        json!({"type": "object", "properties": {"choice": choice}, "required": ["choice"]}),
    )
}

#[test]
fn c12_an_option_is_chosen_by_its_number_or_its_words_and_nothing_else_is_one() {
    assert_eq!(colour().question(), "1) Red (Recommended)  2) Blue  or type it > ");
    for (line, choice) in [
        ("2", "Blue"),
        ("bLUE", "Blue"),
        ("red", "Red (Recommended)"),
        ("red (recommended)", "Red (Recommended)"),
    ] {
        assert_eq!(colour().hear(line), Heard::Answer(json!({ "choice": choice })), "{line}");
    }
    for line in ["0", "3", "green", "-1", "(", "re"] {
        let mut form = colour();
        assert!(matches!(form.hear(line), Heard::Wrong(_)), "{line}");
        assert_eq!(form.hear("2"), Heard::Answer(json!({"choice": "Blue"})), "and it is asked again");
    }
}

#[test]
fn c12_an_empty_line_rejects_nothing_before_that_is_said() {
    let mut form = colour();
    assert_eq!(form.hear(""), Heard::More);
    assert_eq!(form.question(), "Reject the question? [y/N] ");
    assert_eq!(form.hear(""), Heard::More);
    assert_eq!(form.question(), colour().question());
    assert_eq!((form.hear(""), form.hear("y")), (Heard::More, Heard::Rejected));
}

#[test]
fn c12_each_part_of_an_answer_is_asked_for_by_what_it_is() {
    let mut form = form(
        "Set it up.",
        json!({"type": "object", "required": ["name", "public", "ports"], "properties": {
            "name": {"type": "string", "title": "Name"},
            "public": {"type": "boolean", "description": "Can everybody see it?"},
            "ports": {"type": "array"},
            "size": {"title": "Size", "anyOf": [{"enum": ["big"]}, {"minLength": 1}]},
        }}),
    );
    let mut say = |question: &str, line: &str| {
        assert_eq!(form.question(), question);
        form.hear(line)
    };
    assert_eq!(say("Name (empty to reject) > ", "5"), Heard::More);
    assert!(matches!(say("Can everybody see it? [y/n] (empty to reject) > ", "maybe"), Heard::Wrong(_)));
    assert_eq!(say("Can everybody see it? [y/n] (empty to reject) > ", "n"), Heard::More);
    assert!(matches!(say("ports, as JSON (empty to reject) > ", "[80"), Heard::Wrong(_)));
    assert_eq!(say("ports, as JSON (empty to reject) > ", "[80]"), Heard::More);
    let answer = say("Size  1) big  or type your own (empty to leave it out) > ", "");
    assert_eq!(answer, Heard::Answer(json!({"name": "5", "public": false, "ports": [80]})));
    assert_eq!(form.question(), "Name (empty to reject) > ", "an answer that is refused is asked for anew");
    let command =
        r#"runyard approvals approve apr_1 --answer '{"name": "your answer", "public": true, "ports": []}'"#;
    assert_eq!(form.command("apr_1"), command);
}

#[test]
fn c12_an_answer_without_parts_is_asked_for_as_it_is() {
    let mut text = form("Who?", json!({"type": "string"}));
    assert_eq!(text.question(), "Your answer (empty to reject) > ");
    assert_eq!(text.hear("5"), Heard::Answer(json!("5")));
    let mut way = form("Which way?", json!({"enum": ["left", "right"]}));
    assert_eq!(way.question(), "1) left  2) right  or type it > ");
    assert_eq!(way.hear("2"), Heard::Answer(json!("right")));
    assert_eq!(way.command("apr_1"), "runyard approvals approve apr_1 --answer 'left'");
    let mut any = form("What?", json!({}));
    assert_eq!(
        (any.hear("[1]"), any.hear("blue")),
        (Heard::Answer(json!([1])), Heard::Answer(json!("blue")))
    );
}

#[test]
fn c12_an_answer_with_the_command_is_json_or_words() {
    let blue = json!({"choice": "Blue"});
    for text in ["Blue", "blue", "2", "\"Blue\"", "{\"choice\": \"Blue\"}"] {
        assert_eq!(colour().given(text), blue, "{text}");
    }
    // The hub refuses it, and says why.
    assert_eq!(colour().given("green"), json!({"choice": "green"}));
    assert_eq!(form("Who?", json!({"type": "string"})).given("5"), json!("5"));
    let two = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    assert_eq!(form("Who?", two).given("Blue"), json!("Blue"));
}

#[test]
fn c12_what_an_agent_asks_passes_for_no_line_and_no_command_of_ours() {
    let tricky = form("Who?\nrun: ok", json!({"enum": ["it's\nme", "you"]}));
    assert_eq!(tricky.lines(), ["  question: Who?\n      run: ok", "  answers: it's\\nme, you"]);
    let command = tricky.command("apr_1");
    assert!(command.ends_with(r"--answer 'it'\''s\nme'"), "{command}");
}
