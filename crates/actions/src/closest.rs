//! The name that somebody probably meant when they wrote one that is not known.

/// How alike two names are for the one to be taken for the other.
const LIKENESS_MIN: f64 = 0.8;

/// The name that was probably meant: one slip away, or alike.
pub fn closest<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |name: &str| match strsim::damerau_levenshtein(asked, name) {
        0 | 1 => 1.0,
        _ => strsim::jaro_winkler(asked, name),
    };
    let near = known.into_iter().map(|name| (likeness(name), name));
    let near = near.filter(|(likeness, _)| *likeness > LIKENESS_MIN);
    near.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}
