//! What a content is, found by looking at its bytes. What a caller says it is, is never believed.
//!
//! Names only tell one kind of text from another; they make nothing of bytes that are none. It decodes nothing.

/// A kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Media {
    /// Its media type.
    pub(crate) name: &'static str,
    /// Whether it is text, which a redactor can look through and change.
    pub(crate) is_text: bool,
}

/// What binary content begins with, and what it is then.
const BEGINNINGS: [(&[u8], &str); 9] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x00asm", "application/wasm"),
];

/// What the names of texts end with, and what those are then. What a browser would run comes out as such, so that nothing takes it
/// for plain text.
const ENDINGS: [(&str, &str); 11] = [
    (".json", "application/json"),
    (".md", "text/markdown"),
    (".markdown", "text/markdown"),
    (".html", "text/html"),
    (".htm", "text/html"),
    (".xhtml", "text/html"),
    (".svg", "image/svg+xml"),
    (".xml", "application/xml"),
    (".js", "text/javascript"),
    (".mjs", "text/javascript"),
    (".css", "text/css"),
];

/// How far into a text its first element is looked for.
const LOOKED_AT_BYTES_MAX: usize = 1024;

/// What a content of this name is.
pub(crate) fn media(name: &str, content: &[u8]) -> Media {
    let binary = |name| Media { name, is_text: false };
    if let Some((_, found)) = BEGINNINGS.iter().find(|(beginning, _)| content.starts_with(beginning)) {
        return binary(found);
    }
    if content.starts_with(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return binary("image/webp");
    }
    match std::str::from_utf8(content) {
        Ok(text) if !text.contains('\0') => Media { name: text_media(name, text), is_text: true },
        _ => binary("application/octet-stream"),
    }
}

fn text_media(name: &str, text: &str) -> &'static str {
    let beginning = &text[..text.floor_char_boundary(LOOKED_AT_BYTES_MAX)].to_ascii_lowercase();
    let first = beginning.trim_start_matches('\u{feff}').trim_start();
    // Markup shows itself, whatever it is called.
    if first.starts_with('<') {
        if beginning.contains("<svg") {
            return "image/svg+xml";
        }
        if ["<!doctype html", "<html", "<head", "<body", "<script"].iter().any(|tag| beginning.contains(tag))
        {
            return "text/html";
        }
    }
    let name = name.to_ascii_lowercase();
    ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map_or("text/plain", |(_, found)| found)
}

/// The width and height of a picture, where its first bytes say so.
pub fn image_size(content: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(content.get(at..at + 4)?.try_into().ok()?));
    let little = |at: usize| Some(u32::from(u16::from_le_bytes(content.get(at..at + 2)?.try_into().ok()?)));
    match media("", content).name {
        "image/png" if content.get(12..16) == Some(b"IHDR") => Some((big(16)?, big(20)?)),
        "image/gif" => Some((little(6)?, little(8)?)),
        "image/jpeg" => jpeg_size(content),
        "image/webp" => webp_size(content),
        _ => None,
    }
}

/// How many parts of a JPEG are passed over until the one that tells its size.
const JPEG_PARTS_MAX: usize = 1000;

fn jpeg_size(content: &[u8]) -> Option<(u32, u32)> {
    let number = |at: usize| Some(u16::from_be_bytes(content.get(at..at + 2)?.try_into().ok()?));
    let mut at = 2;
    for _ in 0..JPEG_PARTS_MAX {
        let marker = (*content.get(at)? == 0xff).then_some(*content.get(at + 1)?)?;
        match marker {
            // The frames, but for the tables among their numbers.
            0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                return Some((u32::from(number(at + 7)?), u32::from(number(at + 5)?)));
            }
            // Filling.
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            _ => at += 2 + usize::from(number(at + 2)?),
        }
    }
    None
}

fn webp_size(content: &[u8]) -> Option<(u32, u32)> {
    let three = |at: usize| {
        let bytes = content.get(at..at + 3)?;
        Some(u32::from(bytes[0]) | u32::from(bytes[1]) << 8 | u32::from(bytes[2]) << 16)
    };
    match content.get(12..16)? {
        b"VP8X" => Some((three(24)? + 1, three(27)? + 1)),
        b"VP8L" => {
            let bits = u32::from_le_bytes(content.get(21..25)?.try_into().ok()?);
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((three(26)? & 0x3fff, three(28)? & 0x3fff)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c14_a_content_is_what_its_bytes_say_and_not_what_its_name_says() {
        #[track_caller]
        fn check(name: &str, content: &[u8], expected: &'static str, is_text: bool) {
            assert_eq!(media(name, content), Media { name: expected, is_text }, "{name}");
        }
        check("page.html", b"\x89PNG\r\n\x1a\n<script>", "image/png", false);
        check("a.txt", b"\xff\xd8\xff\xe0", "image/jpeg", false);
        check("a.txt", b"GIF89a", "image/gif", false);
        check("a.txt", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", false);
        check("a.txt", b"%PDF-1.7", "application/pdf", false);
        check("a.txt", b"PK\x03\x04", "application/zip", false);
        check("a.txt", b"\x1f\x8b\x08", "application/gzip", false);
        check("a.png", b"<p>no picture</p>", "text/plain", true);
        check("a.png", b"<!DOCTYPE html><p>", "text/html", true);
        check("a.txt", b" \n<ScRiPt>alert(1)</script>", "text/html", true);
        check("a.png", "\u{feff}<?xml version=\"1.0\"?><SVG onload=x>".as_bytes(), "image/svg+xml", true);
        check("a.svg", b"", "image/svg+xml", true);
        check("A.HTML", b"hello", "text/html", true);
        check("a.json", b"{}", "application/json", true);
        check("a.md", b"# a", "text/markdown", true);
        check("a.mjs", b"1", "text/javascript", true);
        check("a", "Grüße".as_bytes(), "text/plain", true);
        check("a.txt", b"a\0b", "application/octet-stream", false);
        check("a.html", b"\xff\xfe<\0h\0", "application/octet-stream", false);
    }

    #[test]
    fn a_picture_tells_its_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0";
        assert_eq!(image_size(png), Some((1280, 720)));
        assert_eq!(image_size(b"GIF89a\x40\x01\xf0\0"), Some((320, 240)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc2\0\x0b\x08\0\xf0\x01\x40";
        assert_eq!(image_size(jpeg), Some((320, 240)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x3f\x01\0\xef\0\0";
        assert_eq!(image_size(extended), Some((320, 240)));
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x3f\xc1\x3b\0";
        assert_eq!(image_size(lossless), Some((320, 240)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a\x40\x01\xf0\0\0";
        assert_eq!(image_size(lossy), Some((320, 240)));
    }

    #[test]
    fn what_is_cut_short_or_no_picture_has_no_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x05\0\0\0\x02\xd0";
        for cut in 0..png.len() {
            assert_eq!(image_size(&png[..cut]), None, "{cut}");
        }
        for content in
            [&b"\xff\xd8\xff"[..], b"\xff\xd8\xff\xe0\0\0", b"RIFF\0\0\0\0WEBPVP8X", b"GIF89a", b"hi"]
        {
            assert_eq!(image_size(content), None, "{content:?}");
        }
    }
}
