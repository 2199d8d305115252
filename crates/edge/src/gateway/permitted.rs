//! What a request may ask of a provider: to answer from what is in the request, and to reach nobody for it.
//!
//! An agent whose network is cut would otherwise have its provider's: a tool that the provider runs, an image that it fetches, an
//! answer that it keeps for later. All that is refused by name. The request is looked through as it is parsed and none of it is kept,
//! so that what is allowed goes on byte for byte. Names count whatever their case, and one that is there twice is refused: parsers
//! differ in which of the two they take. What has no part in this is not judged: that is the provider's matter.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A request may hold so many values, so that what reads it whole cannot be made to need much more memory than its text.
const VALUES_MAX: usize = 256 * 1024;
/// A name from a request is repeated only so far.
const NAME_CHARS_MAX: usize = 64;

/// The tools that an agent runs itself.
const TOOLS: [&str; 7] =
    ["function", "custom", "local_shell", "shell", "apply_patch", "tool_search", "namespace"];

/// What a request for a chat completion may say beside its conversation and its tools.
const COMPLETION: [&str; 15] = [
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "stream",
    "stream_options",
    "reasoning_effort",
    "stop",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "user",
];
/// The same of Anthropic Messages.
const QUESTION: [&str; 10] = [
    "max_tokens",
    "tool_choice",
    "thinking",
    "output_config",
    "temperature",
    "top_p",
    "top_k",
    "stop_sequences",
    "stream",
    "metadata",
];

/// Why a request is not sent on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unpermitted {
    #[error("the request should be a JSON object")]
    Malformed,
    #[error("the request holds more than {VALUES_MAX} values")]
    TooManyValues,
    #[error("the request says `{0}` twice")]
    Twice(String),
    #[error(
        "the gateway does not pass on this `{0}`: a request says all that it needs, and nothing is kept for later"
    )]
    Field(String),
    #[error("the gateway does not pass on the tool `{0}`: only tools that the agent runs itself are allowed")]
    Tool(String),
    #[error("the gateway does not pass on this `{0}`: only data: URLs are allowed")]
    Remote(String),
}

/// Whose requests it is that are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Responses,
    Chat,
    Messages,
}

/// Looks whether a request may be sent on.
pub(super) fn permitted(body: &[u8], form: Form) -> Result<(), Unpermitted> {
    let seen = Seen { values: Cell::new(0), why: RefCell::new(None) };
    let mut json = serde_json::Deserializer::from_slice(body);
    let place = match form {
        Form::Responses => Place::Request,
        Form::Chat => Place::Completion,
        Form::Messages => Place::Question,
    };
    let look = Look { place, name: "request", seen: &seen };
    match look.deserialize(&mut json).and_then(|_| json.end()) {
        Ok(()) => Ok(()),
        Err(_) => Err(seen.why.take().unwrap_or(Unpermitted::Malformed)),
    }
}

/// What is known across a request.
struct Seen {
    values: Cell<usize>,
    /// Why it is refused; an error of the parser could not say it.
    why: RefCell<Option<Unpermitted>>,
}

/// What a value is there for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Request,
    /// May be false.
    Off,
    /// May not be there.
    Absent,
    Tools,
    Tool,
    ToolType,
    /// Where a tool runs.
    Environment,
    EnvironmentType,
    Input,
    /// One of the things that make up the input.
    Item,
    /// Anything in one.
    Part,
    PartType,
    Url,
    /// A request for a chat completion.
    Completion,
    Model,
    /// A request of Anthropic Messages.
    Question,
    Customs,
    /// A tool of either: without a type the agent runs it.
    Custom,
    CustomType,
    /// Anything in the conversation of either.
    Turn,
    /// Whatever it likes.
    Free,
}

impl Place {
    /// What a field is there for. The name is folded.
    fn of(self, name: &str) -> Place {
        match (self, name) {
            (Place::Request, "background" | "store") => Place::Off,
            (Place::Request, "previous_response_id" | "conversation" | "prompt") => Place::Absent,
            (Place::Request, "tools") => Place::Tools,
            (Place::Request, "input" | "instructions") => Place::Input,
            (Place::Tool, "type") => Place::ToolType,
            (Place::Tool, "tools") => Place::Tools,
            (Place::Tool, "environment") => Place::Environment,
            (Place::Environment, "type") => Place::EnvironmentType,
            (Place::Url, "url") => Place::Url,
            (Place::Completion, "store") => Place::Off,
            (Place::Completion | Place::Question, "model") => Place::Model,
            (Place::Completion | Place::Question, "tools") => Place::Customs,
            (Place::Completion | Place::Question, "messages" | "system") => Place::Turn,
            // These APIs are many providers', each with fields of its own: what nobody here knows may be a search, a server
            // that the provider asks, or a machine of its own.
            (Place::Completion, name) if COMPLETION.contains(&name) => Place::Free,
            (Place::Question, name) if QUESTION.contains(&name) => Place::Free,
            (Place::Completion | Place::Question, _) => Place::Absent,
            (Place::Custom, "type") => Place::CustomType,
            (Place::Turn, name) => match name {
                "url" | "file_data" => Place::Url,
                name if name.ends_with("_url") => Place::Url,
                "file_id" => Place::Absent,
                // Of a call that was made: the agent's matter.
                "input" => Place::Free,
                _ => Place::Turn,
            },
            (Place::Item | Place::Part | Place::Url, name) => match name {
                "type" => Place::PartType,
                // Those that were found by a search for tools.
                "tools" => Place::Tools,
                "file_id" | "file_ids" => Place::Absent,
                // Of a call that was made: the agent's matter.
                "arguments" => Place::Free,
                name if name.ends_with("_url") => Place::Url,
                _ => Place::Part,
            },
            _ => Place::Free,
        }
    }

    /// What the members of a list are there for; none where no list belongs.
    fn of_members(self) -> Option<Place> {
        match self {
            Place::Tools => Some(Place::Tool),
            Place::Input => Some(Place::Item),
            Place::Item | Place::Part => Some(Place::Part),
            Place::Customs => Some(Place::Custom),
            Place::Turn => Some(Place::Turn),
            Place::Free => Some(Place::Free),
            _ => None,
        }
    }

    /// What the fields of an object here belong to; none where no object belongs.
    fn of_object(self) -> Option<Place> {
        match self {
            Place::Input | Place::Item => Some(Place::Item),
            Place::Request | Place::Tool | Place::Environment | Place::Part | Place::Url => Some(self),
            Place::Completion | Place::Question | Place::Custom | Place::Turn | Place::Free => Some(self),
            _ => None,
        }
    }
}

/// What was found where something was looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    Tool(&'static str),
    Something,
}

/// Looks at one value.
#[derive(Clone, Copy)]
struct Look<'a> {
    place: Place,
    /// What the field is called that it is in.
    name: &'a str,
    seen: &'a Seen,
}

impl Look<'_> {
    fn refuse<E: Error>(self, why: impl FnOnce(String) -> Unpermitted) -> E {
        let name = self.name.chars().take(NAME_CHARS_MAX).collect();
        *self.seen.why.borrow_mut() = Some(why(name));
        E::custom("refused")
    }

    /// What is said of a value that is not of a sort that belongs here.
    fn misplaced<E: Error>(self) -> E {
        self.refuse(|name| match self.place {
            Place::Request | Place::Completion | Place::Question => Unpermitted::Malformed,
            Place::Tool | Place::ToolType | Place::Custom | Place::CustomType => Unpermitted::Tool(name),
            Place::Url => Unpermitted::Remote(name),
            _ => Unpermitted::Field(name),
        })
    }

    /// A number, or a truth.
    fn plain<E: Error>(self, is_false: bool) -> Result<Found, E> {
        match self.place {
            Place::Item | Place::Part | Place::Turn | Place::Free => Ok(Found::Something),
            Place::Off if is_false => Ok(Found::Something),
            _ => Err(self.misplaced()),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Look<'_> {
    type Value = Found;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Found, D::Error> {
        let values = self.seen.values.get() + 1;
        self.seen.values.set(values);
        if values > VALUES_MAX {
            return Err(self.refuse(|_| Unpermitted::TooManyValues));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Look<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of a request")
    }

    fn visit_unit<E: Error>(self) -> Result<Found, E> {
        match self.place {
            Place::Request | Place::Tool | Place::ToolType => Err(self.misplaced()),
            Place::Completion | Place::Question | Place::Custom => Err(self.misplaced()),
            _ => Ok(Found::Nothing),
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Found, E> {
        self.plain(!value)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Found, E> {
        self.plain(false)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Found, E> {
        self.plain(false)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Found, E> {
        self.plain(false)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Found, E> {
        let said = Look { name: text, ..self };
        match self.place {
            Place::ToolType => match TOOLS.into_iter().find(|tool| *tool == text) {
                Some(tool) => Ok(Found::Tool(tool)),
                None => Err(said.refuse(Unpermitted::Tool)),
            },
            Place::EnvironmentType if text == "local" => Ok(Found::Something),
            Place::PartType if folded(text) == "item_reference" => Err(said.refuse(Unpermitted::Field)),
            Place::CustomType if matches!(text, "custom" | "function") => Ok(Found::Something),
            Place::CustomType => Err(said.refuse(Unpermitted::Tool)),
            Place::Url if text.starts_with("data:") => Ok(Found::Something),
            Place::Input | Place::Item | Place::Part | Place::PartType => Ok(Found::Something),
            Place::Turn | Place::Free => Ok(Found::Something),
            // Where a provider gives a model a search of the web, it is by its name.
            Place::Model if !folded(text).ends_with(":online") => Ok(Found::Something),
            _ => Err(self.misplaced()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut members: A) -> Result<Found, A::Error> {
        let Some(place) = self.place.of_members() else { return Err(self.misplaced()) };
        while members.next_element_seed(Look { place, ..self })?.is_some() {}
        Ok(Found::Something)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Found, A::Error> {
        let Some(place) = self.place.of_object() else { return Err(self.misplaced()) };
        let (mut names, mut tool, mut is_local, mut is_said) = (HashSet::new(), None, false, false);
        while let Some(name) = fields.next_key::<String>()? {
            let name = if place == Place::Free { name } else { folded(&name) };
            let below = Look { place: place.of(&name), name: &name, seen: self.seen };
            if names.contains(&name) {
                return Err(below.refuse(Unpermitted::Twice));
            }
            match (below.place, fields.next_value_seed(below)?) {
                (_, Found::Tool(found)) => tool = Some(found),
                (Place::Environment | Place::EnvironmentType, Found::Something) => is_local = true,
                (Place::PartType, Found::Something) => is_said = true,
                (_, Found::Something) if name == "role" => is_said = true,
                _ => {}
            }
            names.insert(name);
        }
        match place {
            Place::Tool if tool.is_none() => Err(self.refuse(|_| Unpermitted::Tool("untyped".to_owned()))),
            // Elsewhere it is a machine of the provider's, with a network of its own.
            Place::Tool if tool == Some("shell") && !is_local => {
                Err(self.refuse(|_| Unpermitted::Tool("shell".to_owned())))
            }
            Place::Environment if !is_local => Err(self.misplaced()),
            // With neither a type nor a role it stands for something that was said before.
            Place::Item if !is_said => Err(self.refuse(|_| Unpermitted::Field("item_reference".to_owned()))),
            _ => Ok(Found::Something),
        }
    }
}

/// A name as those read it who do not heed its case.
fn folded(name: &str) -> String {
    let fold = |letter| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        letter => letter.to_ascii_lowercase(),
    };
    name.chars().map(fold).collect()
}
