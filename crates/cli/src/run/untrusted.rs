//! What a project's `runyard.toml` says and what does not count for a run, said before the run begins.
//!
//! It decides nothing: the hub reads the same file by itself.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use runyard_surfaces::cli::one_line;

use super::Shown;
use crate::configuration::{Configuration, Environment, Flags, Why};
use crate::home::Home;

/// How many keys are named.
const NAMED_MAX: usize = 5;

/// Says on standard error, where people read it, what of the project does not count until it is trusted.
pub(super) fn say_what_does_not_count(home: &Home, matches: &ArgMatches, shown: Shown) {
    if !matches!(shown, Shown::Text | Shown::Words) {
        return;
    }
    let Some(place) = place(matches) else { return };
    let (environment, flags) = (Environment::of_process(), Flags::default());
    // What is wrong with it is said by who needs it.
    let Ok(configuration) = Configuration::load(home.path(), Some(&place), &environment, &flags) else {
        return;
    };
    let ignored = configuration.ignored().iter().filter(|ignored| matches!(ignored.why, Why::NotTrusted(_)));
    if let Some(line) = line(&ignored.map(|ignored| ignored.key.as_str()).collect::<Vec<_>>()) {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// The directory that the run works on. What has another name, or goes on from another run, is the hub's to know.
fn place(matches: &ArgMatches) -> Option<PathBuf> {
    let given = matches.get_one::<String>("workspace").map(String::as_str);
    if given.is_none() && matches.contains_id("continue") {
        return None;
    }
    Path::new(given.unwrap_or(".")).canonicalize().ok().filter(|place| place.is_dir())
}

fn line(keys: &[&str]) -> Option<String> {
    let named: Vec<String> = keys.iter().take(NAMED_MAX).map(|key| one_line(key)).collect();
    let more = match keys.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!named.is_empty()).then(|| {
        let named = named.join(", ");
        format!("The project's runyard.toml is not trusted, so this does not count: {named}{more}. See \"runyard trust\".")
    })
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_few_keys_are_named_and_the_rest_counted() {
        assert_eq!(line(&[]), None);
        let said = line(&["a", "b", "c", "d", "e", "f", "g"]).unwrap();
        assert!(said.contains(": a, b, c, d, e and 2 more. "), "{said}");
        assert!(!line(&["a"]).unwrap().contains("more"));
    }
}
