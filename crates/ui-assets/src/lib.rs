//! The console's built files, embedded, with what a server says of each. It knows no request and no page's meaning.
//!
//! `dist/` is what `npm run build` in `web/` writes, and is committed: building this needs no Node. Whether it is what its sources
//! make is a test's to say (`tests/staleness.rs`).

use std::io::Write;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

mod table {
    include!(concat!(env!("OUT_DIR"), "/files.rs"));
}

/// The page that every address of the console answers with.
pub const INDEX: &str = "index.html";
/// Whether no page was built: then [`INDEX`] is a placeholder that says how to.
pub const IS_PLACEHOLDER: bool = table::IS_PLACEHOLDER;
/// Compressing less than this is not worth a header.
const GZIP_BYTES_MIN: usize = 1_024;
/// So many hexadecimal digits of a digest tell versions of a file apart.
const ETAG_DIGITS: usize = 32;
/// The bundler puts so many letters of a content's hash at the end of its name.
const HASH_LETTERS: usize = 8;

/// One embedded file.
#[derive(Debug)]
pub struct Asset {
    /// Its path below the built folder, such as `assets/index-B1x_9aQz.js`.
    pub path: &'static str,
    /// What it holds.
    pub bytes: &'static [u8],
    /// What it is, with its character set.
    pub media_type: &'static str,
    /// A name for exactly these bytes, in quotes.
    pub etag: String,
    /// Whether other bytes would have another path, so that it may be kept for ever.
    pub immutable: bool,
    gzip: OnceLock<Option<Vec<u8>>>,
}

impl Asset {
    fn of((path, bytes): (&'static str, &'static [u8])) -> Self {
        Asset {
            path,
            bytes,
            media_type: media_type(path),
            etag: etag(bytes),
            immutable: has_hash(path),
            gzip: OnceLock::new(),
        }
    }

    /// The same bytes compressed, where that makes them smaller. It is done once, when it is first asked for.
    pub fn gzip(&self) -> Option<&[u8]> {
        let compressed = self.gzip.get_or_init(|| {
            let worth = self.bytes.len() >= GZIP_BYTES_MIN && is_text(self.media_type);
            worth.then(|| gzip(self.bytes)).flatten().filter(|gzip| gzip.len() < self.bytes.len())
        });
        compressed.as_deref()
    }
}

/// The file at exactly this path. Nothing is decoded, and there is no way up.
pub fn asset(path: &str) -> Option<&'static Asset> {
    let all = assets();
    all.binary_search_by(|asset| asset.path.cmp(path)).ok().and_then(|place| all.get(place))
}

/// Every file, in the order of paths.
pub fn assets() -> &'static [Asset] {
    static ALL: OnceLock<Vec<Asset>> = OnceLock::new();
    ALL.get_or_init(|| table::FILES.iter().copied().map(Asset::of).collect())
}

/// A name for all of it: another page has another.
pub fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let all = assets().iter().fold(Sha256::new(), |all, asset| {
            all.chain_update(asset.path).chain_update([0]).chain_update(&asset.etag)
        });
        hex(&all.finalize())[..HASH_LETTERS * 2].to_owned()
    })
}

/// A name for exactly these bytes, in quotes, as HTTP has it.
pub fn etag(bytes: &[u8]) -> String {
    let digest = hex(&Sha256::digest(bytes));
    format!("\"{}\"", &digest[..ETAG_DIGITS])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes as gzip; none where that cannot be done.
pub fn gzip(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn is_text(media_type: &str) -> bool {
    media_type.starts_with("text/") || media_type.ends_with("json") || media_type == "image/svg+xml"
}

/// Whether the bundler named the file after what it holds.
fn has_hash(path: &str) -> bool {
    let name = path.strip_prefix("assets/").unwrap_or_default().rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or("", |(stem, _)| stem);
    let Some(start) = stem.len().checked_sub(HASH_LETTERS + 1) else { return false };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    matches!(stem.as_bytes().get(start..), Some([b'-', hash @ ..]) if hash.iter().copied().all(is_letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_at_its_path_and_nowhere_else() {
        for asset in assets() {
            assert!(std::ptr::eq(super::asset(asset.path).unwrap(), asset));
        }
        for path in [
            "",
            "/",
            "/index.html",
            "./index.html",
            "assets",
            "assets/",
            "assets/../index.html",
            "../Cargo.toml",
            "INDEX.HTML",
            "index.html\0",
            "ui-build.json",
        ] {
            assert!(asset(path).is_none(), "{path:?}");
        }
    }

    #[test]
    fn the_page_has_the_places_that_a_server_fills_in_once_each() {
        let page = std::str::from_utf8(asset(INDEX).unwrap().bytes).unwrap();
        assert_eq!(page.matches("<html lang=\"en\">").count(), 1);
        assert_eq!(page.matches("</head>").count(), 1);
    }

    #[test]
    fn only_what_is_named_after_its_content_is_kept_for_ever() {
        for hashed in [
            "assets/index-B1x_9aQz.js",
            "assets/inter-latin-wght-normal-Dx4kXJAl.woff2",
            "assets/a-12345678.css",
        ] {
            assert!(has_hash(hashed), "{hashed}");
        }
        for plain in [
            "index.html",
            "assets/mark.svg",
            "assets/manifest.webmanifest",
            "assets/x-1234567.js",
            "a-12345678.js",
            "assets/-.js",
        ] {
            assert!(!has_hash(plain), "{plain}");
        }
    }

    #[test]
    fn what_is_compressed_reads_back_and_what_does_not_shrink_is_left() {
        use std::io::Read;
        let text: &'static [u8] = "runyard ".repeat(500).leak().as_bytes();
        let asset = Asset::of(("assets/x.js", text));
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(asset.gzip().unwrap()).read_to_end(&mut back).unwrap();
        assert_eq!(back, text);
        assert!(Asset::of(("assets/x.js", b"small")).gzip().is_none());
        assert!(Asset::of(("assets/x.woff2", text)).gzip().is_none(), "it is compressed already");
    }

    #[test]
    fn other_bytes_have_another_etag() {
        assert_ne!(etag(b"one"), etag(b"two"));
        assert_eq!(etag(b"one").len(), ETAG_DIGITS + 2);
        assert_eq!(build().len(), HASH_LETTERS * 2);
    }
}
