//! A part of a run's changes as people name it: files by their path, hunks by their number, and words on lines of them.
//!
//! Only what there is can be named. Nothing is asked of the hub here.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, ArgAction, ArgMatches};
use runyard::{ActionError, Code};
use runyard_surfaces::cli::one_line;
use serde_json::{Value, json};

/// How many files are named where one is not among them.
const NAMED_MAX: usize = 12;
/// The longest word on a line of the changes.
pub(crate) const COMMENT_CHARS_MAX: usize = 2000;

/// Files by their id in the diff, each whole or only some of its hunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part(BTreeMap<String, Option<BTreeSet<u32>>>);

/// The arguments by which a part is named on the command line.
pub(crate) fn arguments() -> [Arg; 2] {
    let file = Arg::new("file")
        .long("file")
        .value_name("PATH")
        .action(ArgAction::Append)
        .help("Only this file; may be repeated");
    let hunk = Arg::new("hunk").long("hunk").value_name("N").action(ArgAction::Append).help(
        "Only these hunks of the --file before it: 1 or 1,3; FILE:1,3 names the file itself; may be repeated",
    );
    [file, hunk]
}

/// Whether a part is named at all.
pub(crate) fn is_named(matches: &ArgMatches) -> bool {
    ["file", "hunk"].iter().any(|name| matches!(matches.try_get_many::<String>(name), Ok(Some(_))))
}

impl Part {
    /// The part that the arguments name; nothing where they name none.
    pub(crate) fn named(matches: &ArgMatches, found: &Value) -> Result<Option<Self>, ActionError> {
        let given = |name: &str| {
            let texts = matches.get_many::<String>(name).into_iter().flatten().cloned();
            matches.indices_of(name).into_iter().flatten().zip(texts).collect::<BTreeMap<usize, String>>()
        };
        let (files, hunks) = (given("file"), given("hunk"));
        // A file whose hunks are named is not meant whole.
        let mut narrowed: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        let mut part = Part::default();
        for (at, text) in &hunks {
            match text.rsplit_once(':') {
                Some((name, numbers)) => {
                    let file = file(found, name)?;
                    part.add_hunks(file, &numbers_of(numbers)?)?;
                }
                None => {
                    let Some((before, _)) = files.range(..at).next_back() else {
                        return Err(invalid(
                            "A --hunk belongs to the --file before it: name the file first.",
                        ));
                    };
                    narrowed.entry(*before).or_default().extend(numbers_of(text)?);
                }
            }
        }
        for (at, name) in &files {
            let file = file(found, name)?;
            match narrowed.get(at) {
                Some(hunks) => part.add_hunks(file, hunks)?,
                None => part.add(file),
            }
        }
        Ok(Some(part).filter(|part| !part.is_empty()))
    }

    /// The part that a stored selection names.
    pub(crate) fn of(selection: &Value) -> Option<Self> {
        let entry = |chosen: &Value| {
            let hunks = chosen["hunks"].as_array().map(|hunks| hunks.iter().filter_map(number).collect());
            Some((chosen["file"].as_str()?.to_owned(), hunks))
        };
        Some(Part(selection.as_array()?.iter().filter_map(entry).collect()))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a file whole.
    pub(crate) fn add(&mut self, file: &Value) {
        self.0.insert(id(file), None);
    }

    /// Takes hunks of a file, which must be there.
    pub(crate) fn add_hunks(&mut self, file: &Value, hunks: &[u32]) -> Result<(), ActionError> {
        let many = file["hunks"].as_u64().unwrap_or_default();
        if let Some(unknown) = hunks.iter().find(|hunk| **hunk == 0 || u64::from(**hunk) > many) {
            let path = one_line(file["path"].as_str().unwrap_or_default());
            let there = match many {
                0 => "no hunks to choose from: take the file whole".to_owned(),
                1 => "only hunk 1".to_owned(),
                many => format!("the hunks 1 to {many}"),
            };
            let message = format!("There is no hunk {unknown} in {path}: it has {there}.");
            return Err(ActionError::new(Code::NotFound, message));
        }
        // What is named twice is chosen by both, and all of a file is more than some of it.
        if let Some(chosen) = self.0.entry(id(file)).or_insert_with(|| Some(BTreeSet::new())) {
            chosen.extend(hunks);
        }
        Ok(())
    }

    /// Whether a hunk of a file belongs to it.
    pub(crate) fn has(&self, file: &Value, hunk: u32) -> bool {
        self.0.get(&id(file)).is_some_and(|hunks| hunks.as_ref().is_none_or(|hunks| hunks.contains(&hunk)))
    }

    /// Whether something of a file belongs to it.
    pub(crate) fn touches(&self, file: &Value) -> bool {
        self.0.contains_key(&id(file))
    }

    /// As approvals and runs take it.
    pub(crate) fn selection(&self) -> Value {
        let entry = |(file, hunks): (&String, &Option<BTreeSet<u32>>)| match hunks {
            Some(hunks) => json!({"file": file, "hunks": hunks}),
            None => json!({"file": file}),
        };
        self.0.iter().map(entry).collect()
    }

    /// Its files in words.
    pub(crate) fn words(&self, found: &Value) -> String {
        let word = |file: &Value| {
            let path = one_line(file["path"].as_str().unwrap_or_default());
            match self.0.get(&id(file))? {
                None => Some(path),
                Some(hunks) => {
                    let numbers: Vec<String> = hunks.iter().map(u32::to_string).collect();
                    Some(format!("{path} (hunk {} of {})", numbers.join(", "), file["hunks"]))
                }
            }
        };
        listed(files(found).iter().filter_map(word).collect())
    }
}

fn id(file: &Value) -> String {
    file["id"].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn files(found: &Value) -> &[Value] {
    found["files"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn invalid(message: &str) -> ActionError {
    ActionError::new(Code::ValidationError, message)
}

fn numbers_of(text: &str) -> Result<Vec<u32>, ActionError> {
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
    let numbers: Option<Vec<u32>> = text.split(',').map(number).collect();
    numbers.ok_or_else(|| {
        invalid(&format!("Expected numbers of hunks like 1 or 1,3 in --hunk, not {}.", one_line(text)))
    })
}

fn listed(names: Vec<String>) -> String {
    match names.len().checked_sub(NAMED_MAX) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..NAMED_MAX].join(", ")),
        _ => names.join(", "),
    }
}

/// A file of a diff, by its path or its id.
pub(crate) fn file<'a>(found: &'a Value, name: &str) -> Result<&'a Value, ActionError> {
    let is_it = |file: &&Value| file["path"] == name || file["id"] == name;
    files(found).iter().find(is_it).ok_or_else(|| unknown(found, name))
}

fn unknown(found: &Value, name: &str) -> ActionError {
    let paths = files(found).iter().map(|file| one_line(file["path"].as_str().unwrap_or_default()));
    let there = listed(paths.collect());
    let message = format!("Among the changes there is no file {}; there are: {there}.", one_line(name));
    ActionError::new(Code::NotFound, message)
}

/// A word on the changes, `FILE[:LINE]:TEXT`, as an approval takes it.
pub(crate) fn comment(found: &Value, given: &str) -> Result<Value, ActionError> {
    let rest_of = |name: &Value| given.strip_prefix(name.as_str()?)?.strip_prefix(':');
    // A path may hold colons, so the longest that fits is meant.
    let fits = files(found).iter().flat_map(|file| [(file, &file["path"]), (file, &file["id"])]);
    let longest =
        fits.filter_map(|(file, name)| Some((file, rest_of(name)?))).min_by_key(|(_, rest)| rest.len());
    let Some((file, rest)) = longest else {
        return Err(match given.split_once(':') {
            Some((name, _)) => unknown(found, name),
            None => invalid("Expected FILE:LINE:TEXT or FILE:TEXT as a comment."),
        });
    };
    let line = rest.split_once(':').and_then(|(line, text)| Some((line.trim().parse::<u64>().ok()?, text)));
    let (line, text) = match line {
        Some((line, text)) => (Some(line), text.trim()),
        None => (None, rest.trim()),
    };
    if text.is_empty() || text.chars().count() > COMMENT_CHARS_MAX {
        return Err(invalid(&format!("Expected 1 to {COMMENT_CHARS_MAX} characters of text in a comment.")));
    }
    let mut comment = json!({"file": file["id"], "text": text});
    if let Some(line) = line {
        comment["line"] = line.into();
    }
    Ok(comment)
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::*;

    fn found() -> Value {
        json!({"files": [
            {"id": "f1", "path": "poem.txt", "hunks": 3},
            {"id": "f2", "path": "new.md", "hunks": 1},
            {"id": "f3", "path": "odd:name", "hunks": 2},
            {"id": "f4", "path": "logo.png", "hunks": 0},
        ]})
    }

    fn part(words: &[&str]) -> Result<Option<Part>, ActionError> {
        let command = Command::new("approve").args(arguments()).no_binary_name(true);
        Part::named(&command.try_get_matches_from(words).unwrap(), &found())
    }

    #[test]
    fn c22_files_and_hunks_are_named_by_path_id_and_number() {
        #[track_caller]
        fn check(words: &[&str], selection: Value) {
            assert_eq!(part(words).unwrap().map(|part| part.selection()).unwrap_or_default(), selection);
        }
        check(&[], Value::Null);
        check(&["--file", "new.md", "--file", "f1"], json!([{"file": "f1"}, {"file": "f2"}]));
        check(
            &["--file", "poem.txt", "--hunk", "3", "--hunk", "1"],
            json!([{"file": "f1", "hunks": [1, 3]}]),
        );
        check(&["--hunk", "poem.txt:2,3"], json!([{"file": "f1", "hunks": [2, 3]}]));
        check(&["--hunk", "odd:name:1"], json!([{"file": "f3", "hunks": [1]}]));
        check(
            &["--file", "poem.txt", "--hunk", "1,2", "--file", "new.md"],
            json!([{"file": "f1", "hunks": [1, 2]}, {"file": "f2"}]),
        );
        // All of a file is more than some of it.
        check(&["--file", "poem.txt", "--hunk", "poem.txt:1"], json!([{"file": "f1"}]));
    }

    #[test]
    fn c22_what_is_not_there_cannot_be_named_and_what_is_there_is_said() {
        #[track_caller]
        fn check(words: &[&str], code: Code, said: &str) {
            let error = part(words).unwrap_err();
            assert_eq!((error.code().as_str(), error.message()), (code.as_str(), said));
        }
        check(
            &["--file", "a"],
            Code::NotFound,
            "Among the changes there is no file a; there are: poem.txt, new.md, odd:name, logo.png.",
        );
        let hunks = "There is no hunk 4 in poem.txt: it has the hunks 1 to 3.";
        check(&["--hunk", "poem.txt:1,4"], Code::NotFound, hunks);
        check(&["--file", "poem.txt", "--hunk", "4"], Code::NotFound, hunks);
        let whole = "There is no hunk 1 in logo.png: it has no hunks to choose from: take the file whole.";
        check(&["--hunk", "logo.png:1"], Code::NotFound, whole);
        let numbers = "Expected numbers of hunks like 1 or 1,3 in --hunk, not 0.";
        check(&["--file", "poem.txt", "--hunk", "0"], Code::ValidationError, numbers);
        let first = "A --hunk belongs to the --file before it: name the file first.";
        check(&["--hunk", "1", "--file", "poem.txt"], Code::ValidationError, first);
    }

    #[test]
    fn c22_a_comment_names_a_file_and_perhaps_a_line() {
        #[track_caller]
        fn check(given: &str, comment: Value) {
            assert_eq!(super::comment(&found(), given).unwrap(), comment);
        }
        check("poem.txt:12: Why?", json!({"file": "f1", "line": 12, "text": "Why?"}));
        check("poem.txt:Too long: half of it", json!({"file": "f1", "text": "Too long: half of it"}));
        check("odd:name:1:x", json!({"file": "f3", "line": 1, "text": "x"}));
        check("f2:x", json!({"file": "f2", "text": "x"}));
        for (wrong, code) in [
            ("poem.txt", Code::ValidationError),
            ("poem.txt: ", Code::ValidationError),
            ("no.md:x", Code::NotFound),
        ] {
            assert_eq!(super::comment(&found(), wrong).unwrap_err().code(), &code, "{wrong}");
        }
    }

    #[test]
    fn a_part_is_said_in_words_and_comes_back_from_what_was_stored() {
        let part = part(&["--hunk", "poem.txt:1,3", "--file", "new.md"]).unwrap().unwrap();
        assert_eq!(part.words(&found()), "poem.txt (hunk 1, 3 of 3), new.md");
        assert_eq!(Part::of(&part.selection()), Some(part));
    }
}
