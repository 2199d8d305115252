//! In which words codex asks and is answered: what it asks for as a request of ours, and our answer in the shape that it reads.
//!
//! It decides nothing, and says yes to nothing that was not shown: a permission is given as it was understood, never as it came.

use runyard_backend::Answer;
use runyard_domain::gate::{Question, Request};
use serde_json::{Map, Value, json};

use super::translate::Translation;
use super::wire::{Asking, Elicitation, PermissionsApproval, UserInput};

/// The most questions that are asked together.
const QUESTIONS_MAX: usize = 16;

/// How an answer is said.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    /// To a command or a change.
    Decision,
    /// The same, as older versions read it.
    Review,
    /// To a wish for a permission; this is what a yes gives.
    Permission(Value),
    /// To questions with these ids.
    Questions(Vec<String>),
    /// To a form of a tool server.
    Elicitation,
}

impl Form {
    /// The answer.
    pub(super) fn answer(&self, answer: &Answer) -> Value {
        if !answer.approved {
            return self.no(answer.reason.as_deref().unwrap_or("declined"));
        }
        match self {
            Form::Decision => json!({ "decision": "accept" }),
            Form::Review => json!({ "decision": "approved" }),
            Form::Permission(given) => json!({ "permissions": given, "scope": "turn" }),
            Form::Questions(ids) => answers(ids, answer.answer.as_ref()),
            Form::Elicitation => json!({ "action": "accept", "content": answer.answer }),
        }
    }

    /// A no.
    pub(super) fn no(&self, reason: &str) -> Value {
        match self {
            Form::Decision => json!({ "decision": "decline" }),
            Form::Review => json!({ "decision": { "denied": { "rejection": reason } } }),
            Form::Permission(_) => json!({ "permissions": {}, "scope": "turn" }),
            Form::Questions(_) => json!({ "answers": {} }),
            Form::Elicitation => json!({ "action": "decline" }),
        }
    }

    /// What was declined, where the answer itself has no place for a reason.
    pub(super) const fn declined(&self) -> Option<&'static str> {
        match self {
            Form::Decision => Some("The step was declined"),
            Form::Review => None,
            Form::Permission(_) => Some("The permission was declined"),
            Form::Questions(_) => Some("The question was not answered"),
            Form::Elicitation => Some("The form was not filled in"),
        }
    }
}

/// The answers to questions: each a text, or several.
fn answers(ids: &[String], answer: Option<&Value>) -> Value {
    let given = |id: &String| -> Option<(String, Value)> {
        let texts = match answer?.get(id)? {
            Value::String(text) => vec![text.clone()],
            Value::Array(several) => several.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => return None,
        };
        Some((id.clone(), json!({ "answers": texts })))
    };
    json!({ "answers": ids.iter().filter_map(given).collect::<Map<_, _>>() })
}

/// The questions as one question, or why nobody is asked.
pub(super) fn questions(input: &UserInput) -> Result<Request, &'static str> {
    if input.questions.is_empty() || input.questions.len() > QUESTIONS_MAX {
        return Err("it asks nothing, or too much at once");
    }
    if input.questions.iter().any(|question| question.is_secret) {
        return Err("it asks for a secret, which must not enter the record");
    }
    let prompt = input.questions.iter().map(prompt).collect::<Vec<_>>().join("\n\n");
    let properties: Map<String, Value> =
        input.questions.iter().map(|question| (question.id.clone(), schema(question))).collect();
    let required: Vec<&String> = properties.keys().collect();
    let answer_schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    Ok(Request::Question(Question { prompt, answer_schema }))
}

fn prompt(question: &Asking) -> String {
    let choices = question.options.iter().flatten().map(|choice| match choice.description.as_str() {
        "" => format!("\n- {}", choice.label),
        description => format!("\n- {}: {description}", choice.label),
    });
    format!("{}: {}{}", question.header, question.question, choices.collect::<String>())
}

fn schema(question: &Asking) -> Value {
    let mut schema = json!({ "type": "string", "title": question.header, "description": question.question });
    let labels: Vec<&str> = question.options.iter().flatten().map(|choice| choice.label.as_str()).collect();
    if labels.is_empty() {
        schema["minLength"] = 1.into();
    } else if question.is_other {
        schema["anyOf"] = json!([{ "enum": labels }, { "minLength": 1 }]);
    } else {
        schema["enum"] = json!(labels);
    }
    schema
}

/// The form of a tool server as a question, or why nobody is asked.
pub(super) fn elicitation(asked: Elicitation) -> Result<Request, &'static str> {
    match asked.mode.as_str() {
        "form" | "openai/form" if asked.requested_schema.is_object() => {
            let prompt = format!("{} asks: {}", asked.server_name, asked.message);
            Ok(Request::Question(Question { prompt, answer_schema: asked.requested_schema }))
        }
        "url" => Err("it wants a page to be opened, which nobody at a run can do"),
        _ => Err("it asks in a way that cannot be shown to a person"),
    }
}

/// The one thing that a wish for permissions asks for, and what a yes gives; nothing where it asks for more.
pub(super) fn permission(asked: &PermissionsApproval, translation: &Translation) -> Option<(Request, Value)> {
    let path = |path: &str| translation.place(&asked.cwd, path);
    match only(&asked.permissions)? {
        ("network", network) if only(network)? == ("enabled", &Value::Bool(true)) => {
            let request = Request::Network { host: "*".to_owned(), port: None };
            Some((request, json!({ "network": { "enabled": true } })))
        }
        ("fileSystem", files) => {
            let (access, file) = file(files)?;
            let given = json!({ "fileSystem": { access: [file] } });
            match access {
                "read" => Some((Request::Read { path: path(file) }, given)),
                _ => Some((Request::Write { path: path(file), content: None }, given)),
            }
        }
        _ => None,
    }
}

/// Whether to read or to write one file or directory.
fn file(files: &Value) -> Option<(&'static str, &str)> {
    let access = |word: &str| match word {
        "read" => Some("read"),
        "write" => Some("write"),
        _ => None,
    };
    let (word, list) = only(files)?;
    let [one] = list.as_array()?.as_slice() else { return None };
    if word != "entries" {
        return Some((access(word)?, one.as_str()?));
    }
    let path = one.get("path").filter(|path| path["type"] == "path")?;
    Some((access(one.get("access")?.as_str()?)?, path.get("path")?.as_str()?))
}

/// The only member of an object that says something.
fn only(value: &Value) -> Option<(&str, &Value)> {
    let says = |value: &Value| match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    };
    let mut members = value.as_object()?.iter().filter(|(_, value)| says(value));
    match (members.next(), members.next()) {
        (Some((name, value)), None) => Some((name, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::place::Workspace;
    use super::super::tokens::Before;
    use super::*;

    fn asked_for(permissions: Value) -> Option<(Request, Value)> {
        let translation = Translation::new(Workspace::new(Path::new("/checkout")), Before::NOTHING);
        let asked =
            PermissionsApproval { item_id: "call".to_owned(), cwd: "/checkout".to_owned(), permissions };
        permission(&asked, &translation)
    }

    #[test]
    fn b07_a_permission_is_asked_for_as_what_it_means_and_given_as_it_was_understood() {
        let write = |path: &str| Request::Write { path: path.to_owned(), content: None };
        let entry = json!([{ "access": "write", "path": { "type": "path", "path": "src" } }]);
        let given = |access: &str, path: &str| json!({ "fileSystem": { access: [path] } });
        let network = Request::Network { host: "*".to_owned(), port: None };
        for (asked, request, yes) in [
            (json!({ "network": { "enabled": true } }), network, json!({ "network": { "enabled": true } })),
            (
                json!({ "fileSystem": { "write": ["/etc"], "read": [] }, "network": null }),
                write("/etc"),
                given("write", "/etc"),
            ),
            (
                json!({ "fileSystem": { "read": ["a"] } }),
                Request::Read { path: "a".to_owned() },
                given("read", "a"),
            ),
            (json!({ "fileSystem": { "entries": entry } }), write("src"), given("write", "src")),
        ] {
            assert_eq!(asked_for(asked), Some((request, yes)));
        }
    }

    #[test]
    fn b07_a_permission_for_more_than_one_thing_is_not_asked_for() {
        let special =
            json!([{ "access": "write", "path": { "type": "special", "value": { "kind": "root" } } }]);
        for asked in [
            json!({}),
            json!({ "network": { "enabled": true }, "fileSystem": { "read": ["a"] } }),
            json!({ "network": { "enabled": true, "hosts": ["a"] } }),
            json!({ "network": { "enabled": false } }),
            json!({ "fileSystem": { "write": ["a", "b"] } }),
            json!({ "fileSystem": { "write": ["a"], "globScanMaxDepth": 2 } }),
            json!({ "fileSystem": { "entries": special } }),
            json!({ "fileSystem": { "execute": ["a"] } }),
            json!({ "everything": true }),
            json!([]),
        ] {
            assert_eq!(asked_for(asked.clone()), None, "{asked}");
        }
    }

    #[test]
    fn c11_questions_are_one_question_and_their_answers_go_back_by_id() {
        let asked = json!({ "itemId": "call", "questions": [
            { "id": "colour", "header": "Colour", "question": "Which?", "isOther": true,
              "options": [{ "label": "red", "description": "like a rose" }, { "label": "blue" }] },
            { "id": "size", "header": "Size", "question": "How big?", "options": [{ "label": "big" }] },
            { "id": "name", "header": "Name", "question": "Whose?" },
        ]});
        let input: UserInput = serde_json::from_value(asked).unwrap();
        let Ok(Request::Question(Question { prompt, answer_schema })) = questions(&input) else { panic!() };
        assert_eq!(
            prompt,
            "Colour: Which?\n- red: like a rose\n- blue\n\nSize: How big?\n- big\n\nName: Whose?"
        );
        assert_eq!(answer_schema["properties"]["colour"]["anyOf"][0], json!({ "enum": ["red", "blue"] }));
        assert_eq!(answer_schema["properties"]["size"]["enum"], json!(["big"]));
        assert_eq!(answer_schema["required"].as_array().map(Vec::len), Some(3));
        let form = Form::Questions(input.questions.iter().map(|question| question.id.clone()).collect());
        let given = json!({ "colour": "green", "size": ["big"], "name": 7, "other": "x" });
        let yes = Answer { approved: true, reason: None, answer: Some(given) };
        let said =
            json!({ "answers": { "colour": { "answers": ["green"] }, "size": { "answers": ["big"] } } });
        assert_eq!(form.answer(&yes), said);
        assert_eq!(
            form.answer(&Answer { approved: true, reason: None, answer: None }),
            json!({ "answers": {} })
        );
    }

    #[test]
    fn c09_a_question_for_a_secret_and_a_page_to_open_are_asked_of_nobody() {
        let secret = json!({ "itemId": "call", "questions": [{ "id": "k", "header": "Key", "question": "?", "isSecret": true }] });
        assert!(questions(&serde_json::from_value(secret).unwrap()).is_err());
        let many: Vec<Value> = (0..=QUESTIONS_MAX)
            .map(|n| json!({ "id": n.to_string(), "header": "", "question": "" }))
            .collect();
        assert!(
            questions(&serde_json::from_value(json!({ "itemId": "call", "questions": many })).unwrap())
                .is_err()
        );
        for asked in [
            json!({ "mode": "url", "url": "https://example.org", "message": "log in" }),
            json!({ "mode": "openai/userVerification", "challenge": "x" }),
            json!({ "mode": "form", "message": "x" }),
        ] {
            assert!(elicitation(serde_json::from_value(asked).unwrap()).is_err());
        }
        let form = json!({ "mode": "form", "serverName": "s", "message": "m", "requestedSchema": { "type": "object" } });
        let question =
            Question { prompt: "s asks: m".to_owned(), answer_schema: json!({ "type": "object" }) };
        assert_eq!(elicitation(serde_json::from_value(form).unwrap()), Ok(Request::Question(question)));
    }
}
