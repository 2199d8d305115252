//! Whether the value of a key that names a secret is itself one, or only stands for one: a variable, a template, a mask, a
//! type, a word of a sentence.

use crate::placeholder::is_only_placeholders;

/// Words that are written where a secret would stand.
#[rustfmt::skip]
const STAND_IN_WORDS: &[&str] = &[
    "password", "passwd", "passphrase", "pass", "pwd", "pw", "secret", "token", "key", "apikey",
    "credentials", "credential", "value", "string", "str", "text", "null", "nil", "none", "undefined",
    "true", "false", "yes", "no", "required", "optional", "missing", "invalid", "incorrect", "wrong",
    "expired", "empty", "unset", "hidden", "masked", "redacted", "removed", "default", "placeholder",
    "example", "todo", "tbd", "na", "changeme", "int", "integer", "number", "bool", "boolean", "bytes",
    "any", "object", "unknown", "void", "never", "ok", "failed", "accepted", "expected", "unexpected",
    "disabled", "enabled", "not", "is", "the", "must", "should", "cannot", "bearer", "basic", "oauth",
    "prompt", "input", "file", "include", "omit", "denied", "granted", "valid", "active", "revoked", "rejected",
    "ed25519", "ed448", "x25519", "rsa", "dsa", "ecdsa", "secp256k1", "p256", "p384", "aes", "aes128", "aes256",
    "hmac", "sha256", "sha512", "hs256", "hs512", "rs256", "rs512", "es256", "es384", "ps256", "eddsa",
];

/// Whether a value is a reference to something, a template or a mask, in whatever place.
pub(crate) fn is_stand_in(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let (Some(first), Some(last)) = (value.first(), value.last()) else { return true };
    is_only_placeholders(value)
        || is_reference(value)
        || (*first == b'<' && *last == b'>')
        || (*first == b'{' && *last == b'}')
        || is_mask(value)
        || is_note(value)
}

/// `[REDACTED]`, `[your token]`, `YOUR_API_KEY`, `your-password-here`.
fn is_note(value: &[u8]) -> bool {
    let words = |text: &[u8]| text.iter().all(|byte| byte.is_ascii_alphabetic() || b"_- ".contains(byte));
    match value {
        [b'[', inner @ .., b']'] => !inner.is_empty() && words(inner),
        _ => value.len() > 4 && value[..4].eq_ignore_ascii_case(b"your") && words(value),
    }
}

/// `$X`, `${X}`, `$(cmd)`, `{{ x }}`, `%s`, `%(x)s`, `%X%`, `#{x}`, `<%= x %>`.
fn is_reference(value: &[u8]) -> bool {
    let second = value.get(1).copied().unwrap_or_default();
    match value[0] {
        b'$' if second == b'{' || second == b'(' || second == b'$' => true,
        b'$' if value.len() == 2 => second.is_ascii_alphanumeric() || b"@*#?!".contains(&second),
        // `:name` of routes and statements.
        b':' => value.len() > 1 && value[1..].iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_'),
        b'$' => {
            let name = &value[1..];
            !name.is_empty()
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_:.".contains(byte))
                && !name[0].is_ascii_digit()
        }
        b'%' if second == b'(' || second == b'{' => true,
        b'%' if value.len() == 2 => second.is_ascii_alphabetic(),
        b'%' => value.len() > 1 && value.ends_with(b"%"),
        _ => ["{{", "${", "#{", "<%", "$("]
            .iter()
            .any(|mark| memchr::memmem::find(value, mark.as_bytes()).is_some()),
    }
}

/// `****`, `xxxx`, `...`, `sk-…abcd`: what is left when somebody else took the secret out.
fn is_mask(value: &[u8]) -> bool {
    let mut distinct = value.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let only_dots = distinct.iter().all(|byte| b".*-_#?~".contains(byte) || !byte.is_ascii());
    let one_letter = value.len() >= 3 && distinct.len() == 1 && !distinct[0].is_ascii_digit();
    only_dots
        || one_letter
        || has_run(value, b"*", 3)
        || has_run(value, b"xX", 5)
        || value.ends_with(b"...")
        || memchr::memmem::find(value, "…".as_bytes()).is_some()
        || memchr::memmem::find(value, "•••".as_bytes()).is_some()
        || memchr::memmem::find(value, b"....").is_some()
}

fn has_run(value: &[u8], of: &[u8], length: usize) -> bool {
    value.windows(length).any(|window| window.iter().all(|byte| of.contains(byte)))
}

/// Whether a text is how documents and code speak of a secret without giving one.
pub(crate) fn speaks_of_one(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let folded = crate::names::folded(value);
    if is_stand_in(value) || STAND_IN_WORDS.contains(&folded.as_str()) {
        return true;
    }
    let is_name = value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(byte));
    let spoken = [
        "your",
        "insert",
        "replace",
        "enter",
        "changeme",
        "changethis",
        "putyour",
        "dummy",
        "fake",
        "example",
    ]
    .iter()
    .any(|start| folded.starts_with(start))
        || ["here", "placeholder", "example", "goeshere", "changeme"].iter().any(|end| folded.ends_with(end));
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let constant = value.len() >= 3
        && value.contains(&b'_')
        && digits <= 1
        && value.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
        && value.iter().find(|byte| **byte != b'_').is_some_and(u8::is_ascii_uppercase);
    let bracketed =
        value[0] == b'[' && value.ends_with(b"]") && value[1..].iter().any(u8::is_ascii_alphabetic);
    (is_name && spoken && digits <= 3) || constant || bracketed || is_rules(value) || is_colour(value)
}

/// `#1a2b3c`.
fn is_colour(value: &[u8]) -> bool {
    matches!(value, [b'#', digits @ ..] if [3, 4, 6, 8].contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Whether a text under a key of structured data only speaks: a word for a state, or a message about what is wrong.
pub(crate) fn is_plain_words(value: &[u8], is_password: bool) -> bool {
    let words: Vec<&[u8]> = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let spoken = value.len() <= 80
        && value
            .iter()
            .all(|byte| byte.is_ascii_alphabetic() || b" .,!'-".contains(byte) || !byte.is_ascii());
    match words[..] {
        [word] if is_password => STAND_IN_WORDS.contains(&crate::names::folded(word).as_str()),
        [word] => {
            (3..=16).contains(&word.len()) && word.iter().all(u8::is_ascii_alphabetic) && {
                word[1..].iter().all(u8::is_ascii_lowercase)
            }
        }
        // A passphrase is words as well, but not those that make a sentence.
        _ => spoken && words.iter().any(|word| SENTENCE_WORDS.contains(&crate::names::folded(word).as_str())),
    }
}

#[rustfmt::skip]
const SENTENCE_WORDS: &[&str] = &[
    "is", "are", "was", "be", "must", "should", "has", "have", "does", "do", "not", "no", "cannot", "can", "too",
    "the", "a", "an", "at", "to", "of", "for", "and", "or", "your", "this", "required", "invalid", "missing", "wrong",
    "de", "est", "ist", "nicht", "zu", "das",
];

/// Whether a quoted text under a name like `password` is a sentence about it rather than a value.
pub(crate) fn is_sentence(value: &[u8]) -> bool {
    let words: Vec<&[u8]> = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let plain = |word: &&[u8]| {
        let word = word.strip_suffix(b",").unwrap_or(word);
        let word = [&b"."[..], b"!", b"?", b":", b";"]
            .iter()
            .find_map(|end| word.strip_suffix(*end))
            .unwrap_or(word);
        let word = word.strip_prefix(b"(").unwrap_or(word);
        let word = word.strip_suffix(b")").unwrap_or(word);
        word.iter().all(|byte| byte.is_ascii_alphabetic() || b"'-/`".contains(byte) || !byte.is_ascii())
            || (word.len() <= 3 && word.iter().all(u8::is_ascii_digit))
    };
    let capitalised = value.first().is_some_and(u8::is_ascii_uppercase);
    (words.len() >= 3 || (words.len() == 2 && capitalised)) && words.iter().all(plain)
}

/// Whether a text is what a page shows beside a field, rather than what is typed into it: `Forgot your password?`.
pub(crate) fn is_label(value: &[u8]) -> bool {
    let mut words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let capitalised = words.next().is_some_and(|first| first[0].is_ascii_uppercase());
    let goes_on_small = words.next().is_some_and(|second| second[0].is_ascii_lowercase());
    let names_itself = value.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b' ')
        && crate::names::secret_kind(value).is_some();
    capitalised && (names_itself || (goes_on_small && is_sentence(value)))
}

/// `required|min:8`: rules for a value.
fn is_rules(value: &[u8]) -> bool {
    value.contains(&b'|') && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"|:_,".contains(byte))
}

/// Whether an unquoted text is code or a word: a name, a member, a path, a type.
pub(crate) fn is_code(value: &[u8]) -> bool {
    let Some(first) = value.first() else { return true };
    // Something was taken out here, and something was put behind it.
    if value.starts_with(b"[REDACTED") {
        return false;
    }
    if value.iter().any(|byte| b"()".contains(byte)) || b"&*!@[{<|\\".contains(first) {
        return true;
    }
    is_path(value) || is_member_access(value) || is_indexing(value) || is_list_of_code(value)
}

/// `os.environ[`, `config["a"]["b"]`, `tokens[0].value`: a name, and a bracket right behind it.
fn is_indexing(value: &[u8]) -> bool {
    let Some(bracket) = value.iter().position(|byte| *byte == b'[') else { return false };
    let (name, index) = (&value[..bracket], &value[bracket + 1..]);
    let is_name = name.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_') && !name.is_empty();
    // As minified code names things.
    let is_made_up = name.starts_with(b"_0x") && name[3..].iter().all(u8::is_ascii_hexdigit);
    (is_name || is_made_up || is_member_access(name))
        && (index.is_empty() || index.contains(&b']') || index.starts_with(b"\\"))
}

/// `t.key,t.secret`.
fn is_list_of_code(value: &[u8]) -> bool {
    value.contains(&b',')
        && value.split(|byte| *byte == b',').all(|part| is_member_access(part) || is_plain_word(part))
        && value.split(|byte| *byte == b',').any(is_member_access)
}

/// `/run/secrets/x`, `./token`, `~/.netrc`, `C:\x`, and addresses.
pub(crate) fn is_path(value: &[u8]) -> bool {
    let starts = [&b"/"[..], b"./", b"../", b"~/"];
    // `op://vault/db/password`, `token:/etc/credstore/token`: references.
    let scheme =
        value.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_+-.".contains(byte)).count();
    let keepers =
        ["vault:", "ssm:", "arn:", "env:", "secretsmanager:", "keyring:", "ref+", "file:", "keychain:"];
    let refers = (scheme > 1 && value[scheme..].starts_with(b":/"))
        || keepers.iter().any(|keeper| value.starts_with(keeper.as_bytes()));
    if refers || is_place_in_keeper(value) {
        return true;
    }
    let is_start = starts.iter().any(|start| value.starts_with(start));
    let random = value.split(|byte| *byte == b'/').any(|part| part.len() >= 20 && looks_random(part));
    let drive =
        value.len() > 3 && value[0].is_ascii_alphabetic() && value[1] == b':' && b"\\/".contains(&value[2]);
    (is_start && !random && !value.iter().any(|byte| b"+=".contains(byte))) || drive
}

/// `projects/p/secrets/db/versions/latest`, `arn:aws:secretsmanager:…`: where something that keeps secrets keeps it.
pub(crate) fn is_place_in_keeper(value: &[u8]) -> bool {
    let keepers = ["arn:aws", "op://", "vault:", "ssm:", "secretsmanager:", "keyring:", "keychain:", "ref+"];
    if keepers.iter().any(|keeper| value.starts_with(keeper.as_bytes())) {
        return true;
    }
    let is_name = |part: &[u8]| {
        let letters =
            part.iter().take_while(|byte| byte.is_ascii_lowercase() || b"-_.".contains(byte)).count();
        letters > 0 && part.len() - letters <= 2 && part[letters..].iter().all(u8::is_ascii_digit)
    };
    let mut parts = value.split(|byte| *byte == b'/');
    value.iter().filter(|byte| **byte == b'/').count() >= 2 && parts.all(is_name)
}

/// `self.password`, `process.env.X`, `Foo::bar`, `user->token`, `os.environ`: names joined by what joins names.
fn is_member_access(value: &[u8]) -> bool {
    let mut joined = false;
    let mut rest = value;
    let mut parts = 0;
    loop {
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let part = &rest[..length];
        // Names have their digits at the end: `r3d` is no name.
        let letters = part.iter().take_while(|byte| !byte.is_ascii_digit()).count();
        let digits = part[letters..].iter().all(u8::is_ascii_digit).then_some(length - letters);
        if letters == 0 || digits.is_none_or(|digits| digits > 2) || length > 40 {
            return false;
        }
        parts += 1;
        rest = &rest[length..];
        rest = match rest {
            [] => return joined && parts <= 6,
            [b'.', more @ ..]
            | [b':', b':', more @ ..]
            | [b'-', b'>', more @ ..]
            | [b'?', b'.', more @ ..] => more,
            [b'!' | b'?'] => return joined,
            _ => return false,
        };
        joined = true;
    }
}

/// A single word of letters, with or without underscores: it may be a variable, a type, or a word of a sentence.
pub(crate) fn is_plain_word(value: &[u8]) -> bool {
    value.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || *byte == b'-' || !byte.is_ascii())
        // Nobody writes a name this long in one piece.
        && !(value.len() >= 16 && value.iter().all(u8::is_ascii_lowercase))
}

/// A value that only a machine would have made up: long enough, and of more than letters.
pub(crate) fn looks_random(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let upper = value.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    let lower = value.iter().filter(|byte| byte.is_ascii_lowercase()).count();
    if value.len() < 12 || distinct(value) < 6 {
        return false;
    }
    (digits >= 2 && lower + upper >= 2)
        || (upper >= 4 && lower >= 4 && value.len() >= 20 && !is_camel_case(value))
        || (value.len() >= 32 && digits + upper + lower == value.len() && !is_plain_word(value))
}

fn is_camel_case(value: &[u8]) -> bool {
    let upper = value.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    value.iter().all(u8::is_ascii_alphabetic) && upper * 4 <= value.len()
}

pub(crate) fn distinct(value: &[u8]) -> usize {
    let mut seen = [false; 256];
    value.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}
