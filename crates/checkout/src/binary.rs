//! Content that is no text, as `git apply` takes it: the whole of it, in letters.
//!
//! It is not compressed: what is kept so is kept rarely, and read by nobody but git.

use crate::base::ObjectFormat;
use crate::object::Hasher;

/// The digits that git writes binary content with.
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/// How many bytes a line stands for at most.
const LINE_BYTES: usize = 52;
/// How many bytes a block holds at most that is not compressed.
const BLOCK_BYTES: usize = 0xffff;
/// What sums of Adler-32 are taken modulo.
const ADLER: u32 = 65_521;

/// Writes what leads from one content to the other, which need not be there.
pub(crate) fn write(before: Option<&[u8]>, after: Option<&[u8]>, format: ObjectFormat, patch: &mut Vec<u8>) {
    let (old, new) = (name(before, format), name(after, format));
    let after = after.unwrap_or_default();
    patch.extend_from_slice(
        format!("index {old}..{new}\nGIT binary patch\nliteral {}\n", after.len()).as_bytes(),
    );
    for line in stored(after).chunks(LINE_BYTES) {
        write_line(line, patch);
    }
    patch.push(b'\n');
}

/// How git names it; zeros where there is nothing.
fn name(content: Option<&[u8]>, format: ObjectFormat) -> String {
    let Some(content) = content else {
        let digits = match format {
            ObjectFormat::Sha1 => 40,
            ObjectFormat::Sha256 => 64,
        };
        return "0".repeat(digits);
    };
    let mut hasher = Hasher::blob(format, content.len() as u64);
    hasher.update(content);
    hasher.finish().as_str().to_owned()
}

/// The content as a zlib stream of blocks that are not compressed.
fn stored(content: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let blocks = content.len().div_ceil(BLOCK_BYTES).max(1);
    for at in 0..blocks {
        let block = &content[at * BLOCK_BYTES..content.len().min((at + 1) * BLOCK_BYTES)];
        let length = block.len() as u16;
        stream.push(u8::from(at + 1 == blocks));
        stream.extend_from_slice(&length.to_le_bytes());
        stream.extend_from_slice(&(!length).to_le_bytes());
        stream.extend_from_slice(block);
    }
    let (mut one, mut other) = (1_u32, 0_u32);
    for byte in content {
        one = (one + u32::from(*byte)) % ADLER;
        other = (other + one) % ADLER;
    }
    stream.extend_from_slice(&(other << 16 | one).to_be_bytes());
    stream
}

/// A line: how many bytes it stands for, and those, four by four.
fn write_line(bytes: &[u8], patch: &mut Vec<u8>) {
    let length = bytes.len() as u8;
    patch.push(if length <= 26 { b'A' + length - 1 } else { b'a' + length - 27 });
    for four in bytes.chunks(4) {
        let mut padded = [0; 4];
        padded[..four.len()].copy_from_slice(four);
        let mut number = u32::from_be_bytes(padded);
        let mut letters = [0; 5];
        for letter in letters.iter_mut().rev() {
            *letter = DIGITS[(number % 85) as usize];
            number /= 85;
        }
        patch.extend_from_slice(&letters);
    }
    patch.push(b'\n');
}
