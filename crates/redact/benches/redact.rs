//! How fast ordinary text passes, with 200 known secrets, on one thread; beside it what it costs only to copy it, and to
//! count its lines.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot start has nothing to measure")]

use std::fmt::Write;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use runyard_redact::{Kind, Known, Redactor, TagKey};

const SECRETS: usize = 200;
const TEXT_LEN: usize = 8 * 1024 * 1024;

fn main() {
    divan::main();
}

/// Numbers that look random and are the same on every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(alphabet[self.next(alphabet.len() as u64) as usize])).collect()
    }
}

const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

/// Secrets of the lengths that secrets have, a private key among them.
fn redactor() -> Redactor {
    let mut numbers = Numbers(1);
    let known = (0..SECRETS).map(|number| {
        let length = [16, 24, 32, 40, 64, 96][number % 6];
        let value = match number % 20 {
            0 => (0..24).fold(String::from("-----BEGIN PRIVATE KEY-----\n"), |key, _| {
                key + &numbers.text(ALPHABET, 64) + "\n"
            }),
            _ => numbers.text(ALPHABET, length),
        };
        Known::value(value)
    });
    let builder = Redactor::builder(TagKey::from_bytes([9; 32])).known(known);
    builder
        .private_path("/home/ada", "<home>")
        .private_path("/tmp", "<tmp>")
        .workspace("/work/app")
        .build()
        .unwrap()
}

/// Lines of logs, of code and of build output, as an agent's session is made of.
fn ordinary_text() -> String {
    let mut numbers = Numbers(2);
    let mut text = String::with_capacity(TEXT_LEN + 200);
    while text.len() < TEXT_LEN {
        let (number, hash) = (numbers.next(100_000), numbers.text(b"0123456789abcdef", 40));
        let _ = match numbers.next(12) {
            0 => writeln!(
                text,
                "2026-05-01T12:{:02}:{:02}.{number:06}Z INFO request finished method=GET path=/api/v1/tasks/{number} status=200 elapsed_ms={}",
                number % 60,
                number % 59,
                number % 997
            ),
            1 => writeln!(
                text,
                "   Compiling serde_json v1.0.{} (registry+https://github.com/rust-lang/crates.io-index)",
                number % 150
            ),
            2 => writeln!(text, "test parser::tests::reads_nested_lists_{number} ... ok"),
            3 => writeln!(
                text,
                "        let value = self.items.iter().filter(|item| item.is_ready()).map(Item::id).collect::<Vec<_>>();"
            ),
            4 => writeln!(
                text,
                "    fn apply(&self, event: &RunEvent) -> Result<RunState, IllegalTransition> {{"
            ),
            5 => writeln!(
                text,
                "commit {hash}\nAuthor: Ada L <ada@example.com>\nDate:   Fri May 1 12:00:00 2026 +0000\n"
            ),
            6 => writeln!(text, "checksum = \"{hash}{}\"", &hash[..24]),
            7 => writeln!(
                text,
                "The planner first reads the files that changed, then decides which of the steps have to run again."
            ),
            8 => writeln!(text, "src/engine/planning.rs:{number}:9: warning: unused variable: `deadline`"),
            9 => writeln!(
                text,
                "  - name: Install dependencies\n    run: npm ci --ignore-scripts\n    timeout-minutes: {}",
                number % 30
            ),
            10 => writeln!(
                text,
                "// The token bucket refills at a fixed rate; each key of the map has its own bucket, {number} at most."
            ),
            _ => writeln!(text, "drwxr-xr-x 2 ada ada {number:>8} May  1 12:00 module_{number}\n"),
        };
    }
    text
}

fn ordinary_json() -> String {
    let mut numbers = Numbers(3);
    let mut text = String::with_capacity(TEXT_LEN + 400);
    while text.len() < TEXT_LEN {
        let (number, hash) = (numbers.next(100_000), numbers.text(b"0123456789abcdef", 32));
        let _ = writeln!(
            text,
            "{{\"id\":\"evt_{hash}\",\"sequence\":{number},\"type\":\"run.message.delta\",\"at\":\"2026-05-01T12:00:00Z\",\"payload\":{{\"text\":\"The planner reads the files that changed,\\nthen decides which steps run again; {number} of them are left.\",\"usage\":{{\"inputTokens\":{number},\"outputTokens\":12}},\"files\":[\"src/engine/planning.rs\",\"src/engine/gate.rs\"]}}}}"
        );
    }
    text
}

fn bench(bencher: Bencher<'_, '_>, kind: Kind, text: &str) {
    let redactor = redactor();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| redactor.bytes(kind, black_box(text.as_bytes())).len());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn text_200_known(bencher: Bencher<'_, '_>) {
    bench(bencher, Kind::Text, &ordinary_text());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn diff_200_known(bencher: Bencher<'_, '_>) {
    bench(bencher, Kind::Diff, &ordinary_text());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn headers_200_known(bencher: Bencher<'_, '_>) {
    bench(bencher, Kind::Headers, &ordinary_text());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn json_200_known(bencher: Bencher<'_, '_>) {
    bench(bencher, Kind::Json, &ordinary_json());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn text_nothing_known(bencher: Bencher<'_, '_>) {
    let text = ordinary_text();
    let redactor = Redactor::builder(TagKey::from_bytes([9; 32])).build().unwrap();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| redactor.bytes(Kind::Text, black_box(text.as_bytes())).len());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn baseline_copy(bencher: Bencher<'_, '_>) {
    let text = ordinary_text();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| black_box(black_box(text.as_bytes()).to_vec()).len());
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn baseline_count_lines(bencher: Bencher<'_, '_>) {
    let text = ordinary_text();
    bencher
        .counter(BytesCount::new(text.len()))
        .bench(|| memchr::memchr_iter(b'\n', black_box(text.as_bytes())).count());
}

/// One short message, as an action logs it.
#[divan::bench]
fn short_message(bencher: Bencher<'_, '_>) {
    let redactor = redactor();
    bencher
        .bench(|| redactor.text(Kind::Text, black_box("creating the task for ada, 3 of 7 are done")).len());
}

/// Putting a redactor together from 200 values.
#[divan::bench(sample_count = 20, sample_size = 1)]
fn build_200_known() -> Redactor {
    redactor()
}
