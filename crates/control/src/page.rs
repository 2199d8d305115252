//! Pages: how many entries an answer holds, and how large it may get.

use serde::Serialize;

/// The most entries of a page.
pub(crate) const LIMIT_MAX: u32 = 500;
/// The entries of a page of which nothing is said.
const LIMIT_DEFAULT: u32 = 100;
/// A page that is larger than this ends, and the next one goes on. An answer may be larger by one entry.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How many entries a page holds when nothing is said.
pub(crate) const fn limit_default() -> u32 {
    LIMIT_DEFAULT
}

/// The entries of a page, and whether there are more after them. One more than asked for is to be given, if there is one.
pub(crate) fn page<T: Serialize>(entries: impl IntoIterator<Item = T>, limit: u32) -> (Vec<T>, bool) {
    let (mut kept, mut bytes) = (Vec::new(), 0);
    for entry in entries {
        if kept.len() >= limit as usize || bytes > PAGE_BYTES_MAX {
            return (kept, true);
        }
        bytes += size(&entry);
        kept.push(entry);
    }
    (kept, false)
}

/// How many bytes it takes as JSON.
fn size(entry: &impl Serialize) -> usize {
    struct Counted(usize);
    impl std::io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counted = Counted(0);
    // What cannot be written is refused by the runtime, whatever its size.
    let _ = serde_json::to_writer(&mut counted, entry);
    counted.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_where_its_limit_is_and_says_that_there_is_more() {
        assert_eq!(page([1, 2, 3], 3), (vec![1, 2, 3], false));
        assert_eq!(page([1, 2, 3, 4], 3), (vec![1, 2, 3], true));
        assert_eq!(page(Vec::<u8>::new(), 3), (vec![], false));
    }

    #[test]
    fn a_page_of_large_entries_ends_early_but_never_empty() {
        let large = "x".repeat(PAGE_BYTES_MAX);
        let (kept, more) = page([&large, &large], 10);
        assert_eq!((kept.len(), more), (1, true));
        let (kept, more) = page([&large], 10);
        assert_eq!((kept.len(), more), (1, false));
    }
}
