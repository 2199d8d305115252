//! Every value in a profile's secrets, for the redactor: the files as a whole, and what in them is secret by itself.

use runyard_redact::{KNOWN_LEN_MAX, Known};
use serde_json::Value;

use crate::Secret;
use crate::secrets::{json_of, toml_of};

/// How many values the secrets of a run may hold.
const VALUES_MAX: usize = 4_000;
/// How deep values are looked for.
const DEPTH_MAX: usize = 64;
/// How the words end that a secret's name is made of.
const SECRET_WORDS: [&str; 12] = [
    "token",
    "tokens",
    "key",
    "keys",
    "secret",
    "secrets",
    "password",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "cookie",
];

/// More than a redactor can look for.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(super) enum TooMuch {
    #[error("they have more than {max} bytes")]
    Bytes { max: usize },
    #[error("they hold more than {VALUES_MAX} values, or values too deep")]
    Values,
}

/// The values of all files. Their form was checked.
pub(super) fn of_files(files: &[(String, Secret)]) -> Result<Vec<Known>, TooMuch> {
    let mut found = Found::default();
    for (key, value) in files {
        let content = value.expose();
        found.add_whole(key, content)?;
        if key.ends_with(".json")
            && let Ok(object) = json_of(content)
        {
            found.add_json(key, &Value::Object(object), 0)?;
        }
        if key.ends_with(".toml")
            && let Ok(table) = toml_of(content)
        {
            found.add_toml(Place::Plain, &toml::Value::Table(table), 0)?;
        }
    }
    Ok(found.known)
}

/// The credentials in an address.
pub(super) fn of_url(url: &str) -> Vec<Known> {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else { return Vec::new() };
    let password = user.split_once(':').map(|(_, password)| password);
    [Some(user), password].into_iter().flatten().filter(|part| !part.is_empty()).map(Known::value).collect()
}

/// Where in a configuration a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Nothing says that it is secret.
    Plain,
    /// Its name, or that of what holds it, does.
    Secret,
    /// It is the name of a variable, which others may hold.
    Variable,
}

impl Place {
    /// Of what stands under this name here.
    fn under(self, name: &str) -> Place {
        let words = words(name);
        let is = |word: &str| words.iter().any(|found| found == word);
        let is_variable = words.first().is_some_and(|word| word == "env") && words.len() > 1
            || words.ends_with(&["env".to_owned(), "var".to_owned()]);
        match self {
            _ if is_variable => Place::Variable,
            Place::Plain if is("header") || is("headers") => Place::Secret,
            Place::Plain if words.iter().any(|word| SECRET_WORDS.iter().any(|end| word.ends_with(end))) => {
                Place::Secret
            }
            place => place,
        }
    }
}

/// The words of a name such as `http_headers`, `x-api-key` or `apiKey`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = 'A';
    for character in name.chars() {
        if !character.is_alphanumeric() || (character.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| character.is_alphanumeric()) {
            word.extend(character.to_lowercase());
        }
        before = character;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[derive(Default)]
struct Found {
    known: Vec<Known>,
}

impl Found {
    fn add(&mut self, known: Known) -> Result<(), TooMuch> {
        if self.known.len() == VALUES_MAX {
            return Err(TooMuch::Values);
        }
        self.known.push(known);
        Ok(())
    }

    /// A value under the name that it goes by, in pieces that a redactor takes.
    fn add_whole(&mut self, name: &str, value: &[u8]) -> Result<(), TooMuch> {
        value.trim_ascii().chunks(KNOWN_LEN_MAX).try_for_each(|piece| self.add(Known::named(name, piece)))
    }

    /// Every text is secret.
    fn add_json(&mut self, name: &str, value: &Value, depth: usize) -> Result<(), TooMuch> {
        match value {
            _ if depth == DEPTH_MAX => Err(TooMuch::Values),
            Value::String(text) => self.add_whole(name, text.as_bytes()),
            Value::Array(items) => items.iter().try_for_each(|item| self.add_json(name, item, depth + 1)),
            Value::Object(object) => {
                object.iter().try_for_each(|(name, value)| self.add_json(name, value, depth + 1))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    /// What its name makes secret, and the credentials in addresses. Models, providers and addresses may be shown.
    fn add_toml(&mut self, place: Place, value: &toml::Value, depth: usize) -> Result<(), TooMuch> {
        match value {
            _ if depth == DEPTH_MAX => Err(TooMuch::Values),
            toml::Value::String(text) if place == Place::Secret => {
                text.as_bytes().chunks(KNOWN_LEN_MAX).try_for_each(|piece| self.add(Known::value(piece)))
            }
            toml::Value::String(text) => of_url(text).into_iter().try_for_each(|known| self.add(known)),
            toml::Value::Array(items) => {
                items.iter().try_for_each(|item| self.add_toml(place, item, depth + 1))
            }
            toml::Value::Table(table) => {
                table.iter().try_for_each(|(name, value)| self.add_toml(place.under(name), value, depth + 1))
            }
            _ => Ok(()),
        }
    }
}
