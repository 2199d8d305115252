//! The ids of the contract's clauses. What a clause says is not known here.

/// The groups of clauses, each with its last number.
const GROUPS: [(char, u8); 5] = [('A', 22), ('B', 18), ('C', 25), ('D', 16), ('J', 7)];

/// Every id, in order: `A01` to `J07`.
pub(crate) fn all() -> impl Iterator<Item = String> {
    GROUPS.iter().flat_map(|(group, last)| (1..=*last).map(move |number| format!("{group}{number:02}")))
}

/// Whether the text has the form of an id, known or not.
pub(crate) fn looks_like_id(text: &str) -> bool {
    matches!(text.as_bytes(), [b'A'..=b'Z', b'0'..=b'9', b'0'..=b'9'])
}

pub(crate) fn is_known(id: &str) -> bool {
    all().any(|known| known == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_are_those_of_the_contract() {
        let ids: Vec<String> = all().collect();
        assert_eq!(ids.len(), 88);
        assert_eq!((ids[0].as_str(), ids[87].as_str()), ("A01", "J07"));
    }

    #[test]
    fn an_id_past_its_group_is_unknown() {
        let known: Vec<bool> = ["A22", "A23", "A00", "E01", "a01"].iter().map(|id| is_known(id)).collect();
        assert_eq!(known, [true, false, false, false, false]);
        assert!(
            looks_like_id("A23") && !looks_like_id("A1") && !looks_like_id("a01") && !looks_like_id("A001")
        );
    }
}
