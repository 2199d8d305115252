//! Actions as prompts, and the completion of what a person types into one.

use rmcp::model::{CompletionInfo, Prompt, PromptArgument};
use runyard_actions::{Action, Runtime};
use runyard_domain::{Actor, Surface};
use serde_json::{Map, Value};

use super::resources::input_of;
use crate::input_fields;

/// The prompts that this caller may use.
pub(super) fn prompts(runtime: &Runtime, actor: &Actor) -> Vec<(String, Prompt)> {
    let prompt = |action: &Action| {
        let spec = action.spec();
        let arguments = input_fields(&spec.input).into_iter().filter(|field| field.path.len() == 1);
        let arguments: Vec<_> = arguments
            .map(|field| {
                let mut argument = PromptArgument::new(field.path.concat()).with_required(field.required);
                argument.description = field.description;
                argument
            })
            .collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        let mut prompt = Prompt::new(action.name(), Some(spec.description.clone()), arguments);
        prompt.title = Some(spec.title.clone());
        (action.name().to_owned(), prompt)
    };
    runtime.listed(Surface::Mcp, actor).filter(|action| action.spec().prompt).map(prompt).collect()
}

/// The prompt of this name, for this caller.
pub(super) fn named<'a>(runtime: &'a Runtime, actor: &'a Actor, name: &str) -> Option<&'a Action> {
    runtime.listed(Surface::Mcp, actor).find(|action| action.spec().prompt && action.name() == name)
}

/// What a client gave, which is text, as the action's input.
pub(super) fn input(action: &Action, arguments: Option<Map<String, Value>>) -> Value {
    let arguments = arguments.unwrap_or_default();
    let texts = arguments.iter().map(|(name, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (name.as_str(), text)
    });
    let texts: Vec<_> = texts.collect();
    input_of(action, texts.iter().map(|(name, text)| (*name, text.as_str())))
}

/// The values that an argument can have and that begin as typed.
pub(super) fn completion(action: &Action, argument: &str, typed: &str) -> CompletionInfo {
    let property = action.spec().input.json().get("properties").and_then(|all| all.get(argument));
    let values = property.and_then(|property| property.get("enum")).and_then(Value::as_array);
    let values = values.into_iter().flatten().filter_map(Value::as_str);
    let fitting: Vec<_> = values.filter(|value| value.starts_with(typed)).map(str::to_owned).collect();
    let total = u32::try_from(fitting.len()).unwrap_or(u32::MAX);
    let shown: Vec<_> = fitting.into_iter().take(CompletionInfo::MAX_VALUES).collect();
    let has_more = usize::try_from(total).is_ok_and(|total| total > shown.len());
    CompletionInfo::with_pagination(shown, Some(total), has_more).unwrap_or_default()
}
