//! Tokens that vendors mark with a prefix, so that everybody can recognise them.
//!
//! A prefix alone is no token: enough must follow, of the right alphabet and with some variety, so that code and documents
//! about tokens stay as they are.

use super::{Found, Rest};
use crate::guesses::values::{distinct, is_stand_in};
use crate::placeholder::SecretKind;
use crate::window::{Window, is_word};

/// What a token's body is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Letters and digits.
    Alnum,
    /// And `_`.
    Word,
    /// And `-`.
    Dashed,
    /// And `.`.
    Dotted,
    /// Base64.
    Base64,
    /// Capitals and digits.
    Upper,
    Hex,
    /// What paths of webhooks are made of.
    Path,
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        match self {
            Alphabet::Alnum => byte.is_ascii_alphanumeric(),
            Alphabet::Word => is_word(byte),
            Alphabet::Dashed => is_word(byte) || byte == b'-',
            Alphabet::Dotted => is_word(byte) || byte == b'-' || byte == b'.',
            Alphabet::Base64 => byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte),
            Alphabet::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Alphabet::Hex => byte.is_ascii_hexdigit(),
            Alphabet::Path => is_word(byte) || byte == b'-' || byte == b'/',
        }
    }
}

/// A vendor's token.
#[derive(Debug)]
pub(crate) struct Vendor {
    pub(crate) prefix: &'static str,
    alphabet: Alphabet,
    least: usize,
    most: usize,
    kind: SecretKind,
    /// The prefix says only what follows and is shown.
    shows_prefix: bool,
}

const fn token(prefix: &'static str, alphabet: Alphabet, least: usize) -> Vendor {
    Vendor { prefix, alphabet, least, most: usize::MAX, kind: SecretKind::Token, shows_prefix: false }
}

const fn key(prefix: &'static str, alphabet: Alphabet, least: usize) -> Vendor {
    Vendor { prefix, alphabet, least, most: usize::MAX, kind: SecretKind::Key, shows_prefix: false }
}

const fn exactly(prefix: &'static str, alphabet: Alphabet, length: usize) -> Vendor {
    Vendor { prefix, alphabet, least: length, most: length, kind: SecretKind::Key, shows_prefix: false }
}

const fn after(prefix: &'static str, alphabet: Alphabet, least: usize, kind: SecretKind) -> Vendor {
    Vendor { prefix, alphabet, least, most: usize::MAX, kind, shows_prefix: true }
}

use Alphabet::{Alnum, Base64, Dashed, Dotted, Hex, Path, Upper, Word};

#[rustfmt::skip]
pub(crate) const VENDORS: &[Vendor] = &[
    // Our own: a person's token, and a run's
    token("ryd_", Hex, 64), token("ryr_", Hex, 64),
    // GitHub, GitLab, Bitbucket, Atlassian
    token("ghp_", Alnum, 20), token("gho_", Alnum, 20), token("ghu_", Alnum, 20), token("ghs_", Alnum, 20),
    token("ghr_", Alnum, 20), token("github_pat_", Word, 22),
    token("glpat-", Dotted, 16), token("glptt-", Dashed, 16), token("gldt-", Dashed, 16), token("glrt-", Dashed, 16),
    token("glcbt-", Dashed, 16), token("glft-", Dashed, 16), token("glsoat-", Dashed, 16), token("glimt-", Dashed, 16),
    token("glagent-", Dashed, 16), token("ATBB", Alnum, 28), token("ATATT3", Base64, 40), token("ATCTT3", Base64, 40),
    // Models
    key("sk-", Dashed, 16), key("gsk_", Alnum, 32), key("xai-", Alnum, 40), key("pplx-", Alnum, 32),
    key("nvapi-", Dashed, 40), token("hf_", Alnum, 30), token("r8_", Alnum, 32),
    // Chat
    token("xoxb-", Dashed, 16), token("xoxp-", Dashed, 16), token("xoxa-", Dashed, 16), token("xoxr-", Dashed, 16),
    token("xoxs-", Dashed, 16), token("xoxe-", Dashed, 16), token("xoxe.xoxp-", Dashed, 16), token("xapp-", Dashed, 16),
    token("xoxc-", Dashed, 16), token("xoxd-", Base64, 16),
    after("hooks.slack.com/services/", Path, 20, SecretKind::Url),
    after("hooks.slack.com/workflows/", Path, 20, SecretKind::Url),
    after("discord.com/api/webhooks/", Path, 40, SecretKind::Url),
    after("discordapp.com/api/webhooks/", Path, 40, SecretKind::Url),
    after("webhook.office.com/webhookb2/", Path, 40, SecretKind::Url),
    // Clouds
    exactly("AKIA", Upper, 16), exactly("ASIA", Upper, 16), key("ABSK", Base64, 60),
    key("AIza", Dashed, 30), token("ya29.", Dotted, 20), key("GOCSPX-", Dashed, 20), token("1//0", Dashed, 30),
    after("AccountKey=", Base64, 40, SecretKind::Key), after("SharedAccessKey=", Base64, 30, SecretKind::Key),
    token("dop_v1_", Hex, 40), token("doo_v1_", Hex, 40), token("dor_v1_", Hex, 40), token("FlyV1 fm", Base64, 20),
    token("fm2_", Base64, 40), token("fo1_", Dashed, 30), token("dapi", Hex, 32), token("hvs.", Dashed, 20),
    token("hvb.", Dashed, 20), token("hvr.", Dashed, 20), token("tskey-", Dashed, 16), token("sbp_", Hex, 32),
    key("sb_secret_", Dashed, 20), token("pul-", Hex, 32), token("vcp_", Alnum, 24), token("rnd_", Alnum, 28),
    // Payments and shops
    key("sk_live_", Word, 16), key("sk_test_", Word, 16), key("rk_live_", Word, 16), key("rk_test_", Word, 16),
    key("whsec_", Base64, 20), token("shpat_", Hex, 28), token("shpss_", Hex, 28), token("shpca_", Hex, 28),
    token("shppa_", Hex, 28), token("EAAA", Dashed, 50), token("EAACEdEose0cBA", Alnum, 20), token("sq0atp-", Dashed, 20), token("sq0csp-", Dashed, 20),
    key("access_token$production$", Word, 20),
    // Packages
    token("npm_", Alnum, 30), token("pypi-AgE", Dashed, 30), token("rubygems_", Hex, 40), token("dckr_pat_", Dashed, 20),
    token("dckr_oat_", Dashed, 20), token("cio", Alnum, 32), token("oy2", Alnum, 40), token("CLOJARS_", Alnum, 40),
    // Mail, telephone, tools
    token("SG.", Dotted, 40), key("xkeysib-", Dashed, 40), key("xsmtpsib-", Dashed, 40), exactly("key-", Hex, 32),
    token("lin_api_", Alnum, 30), token("lin_oauth_", Alnum, 30), token("ntn_", Alnum, 30), exactly("secret_", Alnum, 43),
    token("glsa_", Word, 30), token("glc_", Base64, 30), token("pscale_tkn_", Dotted, 30), token("pscale_pw_", Dotted, 30),
    token("pscale_oauth_", Dotted, 30), key("AGE-SECRET-KEY-1", Upper, 40), token("dp.pt.", Alnum, 30),
    token("dp.st.", Dotted, 30), token("dp.ct.", Alnum, 30), token("dp.sa.", Alnum, 30), token("dp.scim.", Alnum, 30),
    token("sntrys_", Base64, 30), token("sntryu_", Hex, 30), key("NRAK-", Upper, 20), key("NRII-", Base64, 20),
    key("PMAK-", Dashed, 30), token("figd_", Dashed, 30), token("phx_", Alnum, 30), token("CFPAT-", Dashed, 30),
    token("SWMTKN-1-", Dashed, 40), token("ops_eyJ", Base64, 40), token("dt0c01.", Dotted, 40), token("sgp_", Word, 32),
    token("bkua_", Hex, 32), token("tfp_", Dashed, 40), key("shippo_live_", Hex, 32),
    token("pat-na1-", Dashed, 30), token("pat-eu1-", Dashed, 30), token("HRKU-", Dashed, 30), token("sqp_", Hex, 32),
    token("squ_", Hex, 32), token("sqa_", Hex, 32), token("CCIPAT_", Word, 40), token("CCIPRJ_", Word, 40),
    token("lsv2_pt_", Word, 32), token("lsv2_sk_", Word, 32), key("pcsk_", Word, 40), key("amzn.mws.", Dashed, 30),
    key("amzn1.oa2-cs.v1.", Hex, 40), key("LTAI", Alnum, 12), token("AKCp", Alnum, 60), token("pnu_", Alnum, 30),
    token("rdme_", Alnum, 50), key("FLWSECK-", Dashed, 30), key("FLWSECK_TEST-", Dashed, 12), key("aio_", Alnum, 26),
    key("ek_live_", Word, 16), key("ek_test_", Word, 16), key("EZAK", Alnum, 50), key("EZTK", Alnum, 50),
    key("ico-", Alnum, 32), key("v1.0-", Dashed, 150), after("atlasv1.", Dashed, 50, SecretKind::Token),
    token("ddp_", Alnum, 30), token("nfp_", Alnum, 30), token("sup_sk_", Word, 20), token("ghe_", Alnum, 30),
];

const UNMISTAKABLE: [&str; 12] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "sk_live_",
    "dckr_pat_",
];

/// Secrets of applications in a directory of Azure: a few characters of any kind, then these.
pub(crate) const AZURE: [&str; 2] = ["7Q~", "8Q~"];

/// Twilio's API keys: the letters are too few to look for, so each first digit is looked for with them.
pub(crate) const TWILIO: [&str; 16] = [
    "SK0", "SK1", "SK2", "SK3", "SK4", "SK5", "SK6", "SK7", "SK8", "SK9", "SKa", "SKb", "SKc", "SKd", "SKe",
    "SKf",
];

pub(crate) fn find(window: &Window<'_>, vendor: &Vendor) -> Option<Found> {
    let prefix = vendor.prefix.len();
    let joined = match window.before(1) {
        _ if is_unmistakable(window, vendor) || window.is_behind_percent() => false,
        // `Foo.SG.x` and `risk-free`, `task-sk-…`: the prefix is the end of a longer word.
        Some(b'-') => {
            !vendor.shows_prefix && window.before(2).is_some_and(|byte| byte.is_ascii_alphanumeric())
        }
        _ => !vendor.shows_prefix && !window.is_word_start(),
    };
    if joined {
        return None;
    }
    let mut end = window.run(prefix, |byte| vendor.alphabet.has(byte));
    // Another one right behind it.
    let most_end = end.min(prefix.saturating_add(vendor.most));
    if window.has(most_end, vendor.prefix.as_bytes()) {
        end = most_end;
    }
    let body = window.slice(prefix, end);
    let trimmed = body.iter().rev().take_while(|byte| b"-._".contains(byte)).count();
    let (body, end) =
        if window.is_cut_at(end) { (body, end) } else { (&body[..body.len() - trimmed], end - trimmed) };
    let most = window.get(end).is_some_and(is_word)
        && vendor.most != usize::MAX
        && !window.has(end, vendor.prefix.as_bytes());
    // As the documents of a vendor write it.
    let is_example = body.ends_with(b"EXAMPLE");
    if is_example
        || body.len() < vendor.least
        || body.len() > vendor.most
        || most
        || !is_varied(body)
        || is_words(body)
    {
        return None;
    }
    let start = if vendor.shows_prefix { prefix } else { 0 };
    Found::new(window, start, end, vendor.kind, Rest::Token)
}

/// Whether a prefix needs nothing to its left to be believed: nobody writes it by chance.
fn is_unmistakable(window: &Window<'_>, vendor: &Vendor) -> bool {
    match vendor.prefix {
        "sk-" => window.has(3, b"ant-") || window.has(3, b"proj-"),
        // Letters only: in a long run of base64 they stand by chance.
        "AKIA" | "ASIA" => {
            let left = window.left().iter().rev();
            left.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte)).count() <= 20
        }
        prefix => UNMISTAKABLE.contains(&prefix),
    }
}

pub(crate) fn twilio(window: &Window<'_>) -> Option<Found> {
    let end = window.run_of(2, 40, |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let whole = end == 34 && !window.get(34).is_some_and(is_word) && window.is_word_start();
    if !whole || !is_varied(window.slice(2, end)) {
        return None;
    }
    Found::new(window, 0, end, SecretKind::Key, Rest::Token)
}

/// `123456789:AA…`: from the colon on, since the number before it is the bot's public id.
pub(crate) fn telegram(window: &Window<'_>) -> Option<Found> {
    let digits =
        (1..=12).take_while(|back| window.before(*back).is_some_and(|byte| byte.is_ascii_digit())).count();
    let end = window.run_of(1, 64, |byte| Alphabet::Dashed.has(byte));
    if !(8..=10).contains(&digits) || !(34..=36).contains(&(end - 1)) || !is_varied(window.slice(1, end)) {
        return None;
    }
    Found::new(window, 1, end, SecretKind::Token, Rest::Token)
}

/// `abc8Q~…`: from the digit on.
pub(crate) fn azure(window: &Window<'_>) -> Option<Found> {
    let end = window.run_of(3, 40, |byte| Alphabet::Dotted.has(byte) || byte == b'~');
    let is_whole =
        (31..=37).contains(&(end - 3)) && window.before(3).is_some_and(|byte| !byte.is_ascii_whitespace());
    let found = Found::new(window, 0, end, SecretKind::Secret, Rest::Token);
    found.filter(|_| is_whole && is_varied(window.slice(3, end)))
}

/// `pat` with 14 characters, a full stop and 64 hexadecimal digits, as Airtable makes them.
pub(crate) fn airtable(window: &Window<'_>) -> Option<Found> {
    if !window.is_word_start() || window.run_of(3, 15, |byte| byte.is_ascii_alphanumeric()) != 17 {
        return None;
    }
    let end =
        if window.get(17) == Some(b'.') { window.run_of(18, 65, |byte| byte.is_ascii_hexdigit()) } else { 0 };
    if end == 82 { Found::new(window, 0, end, SecretKind::Token, Rest::Token) } else { None }
}

/// `re_` with 8 and 24 characters, as Resend makes them.
pub(crate) fn resend(window: &Window<'_>) -> Option<Found> {
    if !window.is_word_start() || window.run_of(3, 9, |byte| byte.is_ascii_alphanumeric()) != 11 {
        return None;
    }
    let end = if window.get(11) == Some(b'_') {
        window.run_of(12, 30, |byte| byte.is_ascii_alphanumeric())
    } else {
        0
    };
    let is_mixed = window.slice(3, end).iter().any(u8::is_ascii_digit);
    if (34..=38).contains(&end) && is_mixed && !window.get(end).is_some_and(is_word) {
        return Found::new(window, 0, end, SecretKind::Key, Rest::Token);
    }
    None
}

/// The tokens of Discord's bots begin with base64 of a number: each of its first three digits has its own characters.
pub(crate) fn discord_starts() -> impl Iterator<Item = String> {
    let firsts = ["MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"];
    firsts.into_iter().flat_map(|first| {
        "AEIMQUYcgk"
            .chars()
            .flat_map(move |second| "wxyz012345".chars().map(move |third| format!("{first}{second}{third}")))
    })
}

/// A number, a time and a signature.
pub(crate) fn discord(window: &Window<'_>) -> Option<Found> {
    if !window.is_word_start() {
        return None;
    }
    let number = window.run_of(0, 29, |byte| byte.is_ascii_alphanumeric());
    if !(23..=28).contains(&number) || window.get(number) != Some(b'.') {
        return None;
    }
    let time = window.run_of(number + 1, 8, |byte| Alphabet::Dashed.has(byte));
    if time - number != 7 || window.get(time) != Some(b'.') {
        return None;
    }
    let end = window.run_of(time + 1, 45, |byte| Alphabet::Dashed.has(byte));
    let found = Found::new(window, 0, end, SecretKind::Token, Rest::Token);
    found.filter(|_| (26..=42).contains(&(end - time)))
}

/// The 40 characters of an AWS secret key, behind their name.
pub(crate) fn aws_secret(window: &Window<'_>, name: usize) -> Option<Found> {
    let mut at = window.run_of(name, 4, |byte| b"\"'\\`]".contains(&byte));
    at = window.blanks(at);
    at = match (window.get(at)?, window.get(at + 1)) {
        (b'=', Some(b'>')) => at + 2,
        (b'=' | b':' | b',', _) => at + 1,
        // `aws configure set aws_secret_access_key …`
        _ if at > name => at,
        _ => return None,
    };
    at = window.blanks(at);
    at = window.run_of(at, 4, |byte| b"\"'\\`".contains(&byte));
    let end = window.run_of(at, 41, |byte| byte.is_ascii_alphanumeric() || byte == b'/' || byte == b'+');
    if end - at != 40 || !is_varied(window.slice(at, end)) {
        return None;
    }
    Found::new(window, at, end, SecretKind::Key, Rest::Token)
}

/// Whether a body has the variety that random text has; `xxxxxxxx` and `00000000` have not.
fn is_varied(body: &[u8]) -> bool {
    distinct(body) >= 6 && !is_stand_in(body)
}

/// Words with dashes or underscores between them: `sk-fading-circle-container`, `sk-your-key-goes-here`.
fn is_words(body: &[u8]) -> bool {
    let parted = body.iter().any(|byte| b"-_.".contains(byte));
    parted
        && body.split(|byte| b"-_.".contains(byte)).all(|word| {
            word.len() <= 12
                && (word.iter().all(u8::is_ascii_lowercase)
                    || word.iter().all(u8::is_ascii_uppercase)
                    || (word.len() <= 2 && word.iter().all(u8::is_ascii_digit)))
        })
}
