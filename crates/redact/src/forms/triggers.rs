//! Where a closer look is worth it: a few hundred literals, found with one table look-up per byte.

use super::vendors::{AZURE, TWILIO, VENDORS, discord_starts};

/// Each literal is looked for by its first bytes.
const GRAM: usize = 4;
/// The shortest literal that can be looked for.
pub(crate) const SHORTEST: usize = 3;
const TABLE_BITS: u32 = 18;
const STARTS_SHIFT: u32 = TABLE_BITS - 10;
const STARTS_LEN: usize = 1 << 10;
const TABLE_LEN: usize = 1 << (TABLE_BITS - 6);
// A bit for each slot, and none too many: a larger table would find the same and leave the cache.
const _: () = assert!(TABLE_LEN * u64::BITS as usize == 1 << TABLE_BITS);
/// Setting the bit of lower case in each byte folds letters; what it does to other bytes is only a collision.
const FOLDED: u32 = 0x2020_2020;

/// Which matcher looks closer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Vendor(usize),
    Twilio,
    Telegram,
    Azure,
    Airtable,
    Resend,
    Discord,
    AwsSecret,
    Jwt,
    Pem,
    PemInBase64,
    Url,
    Authorization,
    Bearer,
    Basic,
    Cookie,
    /// `-u`, `--user`.
    User,
    /// `curl -uada:…`.
    Curl,
    /// `-b`, `--cookie`.
    CookieFlag,
    /// `mysql -p…`, `sshpass -p …`.
    PasswordFlag,
    /// `"auth"`.
    AuthPair,
    /// `IDENTIFIED BY`.
    IdentifiedBy,
    /// A word that may end a name.
    Name,
    /// The name of a short known value.
    ShortKnown,
    /// A private path, by its number.
    Path(usize),
}

/// A literal, and who looks closer where it stands.
#[derive(Debug)]
pub(crate) struct Trigger {
    /// In lower case, if the case does not matter.
    pub(crate) literal: Box<[u8]>,
    pub(crate) any_case: bool,
    pub(crate) rule: Rule,
}

/// Literals in any case.
const WORDS: [(&str, Rule); 34] = [
    ("password", Rule::Name),
    ("passwd", Rule::Name),
    ("passphrase", Rule::Name),
    ("passcode", Rule::Name),
    ("pass", Rule::Name),
    ("pwd", Rule::Name),
    ("_pw", Rule::Name),
    ("pw=", Rule::Name),
    ("pw:", Rule::Name),
    ("psk", Rule::Name),
    ("kennwort", Rule::Name),
    ("contrasena", Rule::Name),
    ("mnemonic", Rule::Name),
    ("seed_phrase", Rule::Name),
    ("senha", Rule::Name),
    ("sessid", Rule::Name),
    (" -p", Rule::PasswordFlag),
    ("secret", Rule::Name),
    ("token", Rule::Name),
    ("key", Rule::Name),
    ("credential", Rule::Name),
    ("_auth", Rule::Name),
    ("\"auth", Rule::AuthPair),
    ("identified by ", Rule::IdentifiedBy),
    ("authorization", Rule::Authorization),
    ("cookie", Rule::Cookie),
    ("bearer", Rule::Bearer),
    ("basic", Rule::Basic),
    ("secret_access_key", Rule::AwsSecret),
    ("secretaccesskey", Rule::AwsSecret),
    ("secret access key", Rule::AwsSecret),
    ("x-amz-signature", Rule::Name),
    ("sig=", Rule::Name),
    ("signature=", Rule::Name),
];

/// Literals as they are.
const EXACT: [(&str, Rule); 18] = [
    ("curl", Rule::Curl),
    ("-u\"", Rule::User),
    ("-u'", Rule::User),
    ("\"-p\"", Rule::PasswordFlag),
    ("'-p'", Rule::PasswordFlag),
    ("-----BEGIN%20", Rule::Pem),
    ("LS0tLS1CRUdJTi", Rule::PemInBase64),
    ("pat", Rule::Airtable),
    ("re_", Rule::Resend),
    ("-----BEGIN ", Rule::Pem),
    ("eyJ", Rule::Jwt),
    ("://", Rule::Url),
    (":AA", Rule::Telegram),
    ("-u ", Rule::User),
    ("--user", Rule::User),
    ("--proxy-user", Rule::User),
    ("-b ", Rule::CookieFlag),
    ("--cookie", Rule::CookieFlag),
];

/// All the triggers, and the table that finds them.
pub(crate) struct Triggers {
    triggers: Vec<Trigger>,
    /// One bit for each hash of four bytes in lower case.
    any: Box<[u64; TABLE_LEN]>,
    /// The triggers by that hash, sorted.
    by_slot: Vec<(u32, u16)>,
    /// Where in `by_slot` the hashes with the same first bits start.
    starts: Box<[u16; STARTS_LEN + 1]>,
    /// The bytes, in lower case, that triggers begin with.
    firsts: [bool; 256],
}

impl Triggers {
    /// The forms, and what the redactor adds: private paths and the names of short known values.
    pub(crate) fn new(more: impl IntoIterator<Item = Trigger>) -> Self {
        let of =
            |literal: &str, any_case, rule| Trigger { literal: literal.as_bytes().into(), any_case, rule };
        let mut triggers: Vec<Trigger> = WORDS.iter().map(|(word, rule)| of(word, true, *rule)).collect();
        triggers.extend(EXACT.iter().map(|(literal, rule)| of(literal, false, *rule)));
        triggers.extend(
            VENDORS.iter().zip(0..).map(|(vendor, number)| of(vendor.prefix, false, Rule::Vendor(number))),
        );
        triggers.extend(AZURE.iter().map(|literal| of(literal, false, Rule::Azure)));
        triggers.extend(discord_starts().map(|literal| of(&literal, false, Rule::Discord)));
        triggers.extend(TWILIO.iter().map(|literal| of(literal, false, Rule::Twilio)));
        triggers.extend(more.into_iter().filter(|trigger| trigger.literal.len() >= SHORTEST));
        triggers.truncate(usize::from(u16::MAX));
        let mut any = Box::new([0u64; TABLE_LEN]);
        let mut by_slot: Vec<(u32, u16)> = Vec::with_capacity(triggers.len());
        for (trigger, number) in triggers.iter().zip(0u16..) {
            for fourth in trigger.fourth_bytes() {
                let [a, b, c] = [0, 1, 2].map(|at| trigger.literal[at]);
                let slot = slot(u32::from_le_bytes([a, b, c, fourth]) | FOLDED);
                any[slot as usize / 64] |= 1 << (slot % 64);
                by_slot.push((slot, number));
            }
        }
        by_slot.sort_unstable();
        by_slot.dedup();
        by_slot.truncate(usize::from(u16::MAX));
        let mut starts = Box::new([0; STARTS_LEN + 1]);
        for (start, bits) in starts.iter_mut().zip(0u32..) {
            *start = by_slot.partition_point(|(slot, _)| slot >> STARTS_SHIFT < bits) as u16;
        }
        let mut firsts = [false; 256];
        triggers.iter().for_each(|trigger| firsts[usize::from(trigger.literal[0] | 0x20)] = true);
        Triggers { triggers, any, by_slot, starts, firsts }
    }

    /// The first place from `from` on where the first bytes of a trigger may stand, and the hash of what stands there.
    #[inline]
    pub(crate) fn next(&self, text: &[u8], from: usize) -> Option<(usize, u32)> {
        let mut at = from;
        // Eight bytes hold five grams; looking at all five before the first branch keeps the processor busy.
        while let Some(eight) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            let eight = u64::from_le_bytes(*eight);
            let slots = [0, 8, 16, 24, 32].map(|shift| slot((eight >> shift) as u32 | FOLDED));
            if slots.iter().fold(0, |any, slot| any | self.bit(*slot)) != 0 {
                let first = slots.iter().position(|slot| self.bit(*slot) != 0).unwrap_or_default();
                return Some((at + first, slots[first]));
            }
            at += 5;
        }
        while let Some(four) = text.get(at..).and_then(|rest| rest.first_chunk::<GRAM>()) {
            let slot = slot(u32::from_le_bytes(*four) | FOLDED);
            if self.bit(slot) != 0 {
                return Some((at, slot));
            }
            at += 1;
        }
        None
    }

    #[inline]
    fn bit(&self, slot: u32) -> u64 {
        self.any[slot as usize / 64 % TABLE_LEN] >> (slot % 64) & 1
    }

    /// The triggers whose first bytes have this hash.
    pub(crate) fn at_slot(&self, slot: u32) -> impl Iterator<Item = &Trigger> {
        let bits = (slot >> STARTS_SHIFT) as usize;
        let (from, to) = (usize::from(self.starts[bits]), usize::from(self.starts[bits + 1]));
        self.by_slot[from..to]
            .iter()
            .filter(move |(other, _)| *other == slot)
            .map(|(_, number)| &self.triggers[usize::from(*number)])
    }

    /// Whether a trigger starts with this text, which is shorter than what is looked for at once.
    pub(crate) fn may_start(&self, text: &[u8]) -> bool {
        let first = text.first().is_some_and(|first| self.firsts[usize::from(first | 0x20)]);
        first
            && self
                .triggers
                .iter()
                .any(|trigger| trigger.literal.len() >= text.len() && trigger.has_start(text))
    }
}

impl Trigger {
    /// The fourth byte of the literal; where it has only three, whatever may follow.
    fn fourth_bytes(&self) -> Vec<u8> {
        let token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        match (self.literal.get(SHORTEST), self.rule) {
            (Some(fourth), _) => vec![*fourth],
            (None, Rule::Twilio) => (0..=u8::MAX).filter(u8::is_ascii_hexdigit).collect(),
            (None, Rule::Vendor(_) | Rule::Telegram | Rule::Jwt | Rule::Airtable | Rule::Resend) => {
                (0..=u8::MAX).filter(token).collect()
            }
            (None, _) => (0..=u8::MAX).collect(),
        }
    }

    fn has_start(&self, text: &[u8]) -> bool {
        let start = &self.literal[..text.len().min(self.literal.len())];
        if self.any_case { start.eq_ignore_ascii_case(text) } else { start == text }
    }
}

#[inline]
fn slot(gram: u32) -> u32 {
    gram.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_triggers_are_spread_so_that_few_are_compared_in_one_place() {
        let triggers = Triggers::new([]);
        let most = triggers.starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(most < 100, "{most} of {}", triggers.by_slot.len());
    }

    #[test]
    fn a_text_without_triggers_is_passed_over_in_whole() {
        let triggers = Triggers::new([]);
        assert_eq!(triggers.next(b"zzzz zzzz zzzz, zzzz", 0), None);
        let (at, slot) = triggers.next(b"zzzz zzzz zzzz, password", 0).unwrap();
        assert_eq!(at, 16);
        assert!(triggers.at_slot(slot).all(|trigger| trigger.has_start(b"pass")));
    }
}
