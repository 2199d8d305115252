//! Lines that are no part of the corpus, because they need a redactor that knows something, or are very long.

use std::ops::Range;

use runyard_redact::{Kind, Known, Redactor, TagKey};

pub(crate) fn redactor() -> Redactor {
    Redactor::builder(TagKey::from_bytes([7; 32]))
        .workspace("/work/app")
        .private_path("/home/ada", "<home>")
        .private_path("/home/ada/.runyard", "<data>")
        .private_path("/srv/two words", "<two>")
        .private_path("/tmp", "<tmp>")
        .known([Known::named("PIN", "4711"), Known::named("door-code", "o1en"), Known::value("hush")])
        .known(
            [
                "tulip/Harbor+93?quay",
                "we\"ird\\val\nue-7",
                "two words and more",
                "ключ-секрет",
                "eightbyt",
                "u00e9clair",
                "ada/very-secret",
            ]
            .map(Known::value),
        )
        .known([Known::value("-----BEGIN X-----\nMIIEvQIBADANBgkqhkiG\n9w0BAQEFAASCBKcw\n-----END X-----\n")])
        .build()
        .unwrap()
}

#[rustfmt::skip]
pub(crate) const SEEDS: &[(Kind, &str)] = &[
    (Kind::Text, "at /home/ada/notes.txt:3"),
    (Kind::Text, "/home/ada/.runyard/x and /home/ada/.runyard2"),
    (Kind::Text, "error in /work/app/src/x.rs, root /work/app, /work/app/."),
    (Kind::Text, "file:///home/ada/a%20b -I/tmp/inc PATH=/tmp:/bin"),
    (Kind::Diff, "--- a/x\n+++ /home/ada."),
    (Kind::Text, "ssh://tmp@10.0.0.5/srv https://tmp/ https:\\/\\/tmp\\/x"),
    (Kind::Text, "/home/adam /home/ada-evil /home/ada.bak /srv/home/ada ../tmp/x /work/application ~/tmp"),
    (Kind::Text, "say \\n/tmp/x and \\t/tmp, x/tmp -L/tmp x-L/tmp --L/tmp 5/tmp /tmp%2Fx /tmp%20x /tmp~"),
    (Kind::Json, r#"{"a":"\/home\/ada\/x","b":"/tmp","c":"\/work\/app\/y","d":"/work/app","/tmp":1}"#),
    (Kind::Text, "see \"\\/work\\/app\\/y\" and file:///srv/two%20words/x and /srv/two words/y"),
    (Kind::Text, "PIN=4711 pin: 4711, my_pin='4711' pin 4711 SPIN=4711 PIN=47110"),
    (Kind::Text, "door-code: o1en; DOOR_CODE=\"o1en\" doorcode=o1en token=o1en"),
    (Kind::Text, "password=hush secret: hush name=hush pin: hush {\"token\": \"hush\"}"),
    (Kind::Headers, "PIN: 4711\nX-Token: hush\nName: hush"),
    (Kind::Json, r#"{"pin":"4711","token":"hush","x":"pin=4711 token: hush"}"#),
    (Kind::Text, "a tulip/Harbor+93?quay b"),
    (Kind::Text, "a dHVsaXAvSGFyYm9yKzkzP3F1YXk= b R1bGlwL0hhcmJvcis5Mz9xdWF5 c"),
    (Kind::Text, "74756c69702f486172626f722b39333f71756179 tulip%2FHarbor%2B93%3Fquay"),
    (Kind::Diff, "+dHVsaXAvSGFy\n+Ym9yKzkzP3F1\n+YXk=\n-two words\n-and more\n"),
    (Kind::Text, "dHVsaXAvSGFy\\n  Ym9yKzkzP3F1\\r\\n\\tYXk= tulip/Har\r\n    bor+93?quay"),
    (Kind::Text, "two words\n and more, two words\nand more, two\nwords and more"),
    (Kind::Json, r#"{"a":"we\"ird\\val\nue-7","b":["tulip\/Harbor+93?quay"]} we\"ird\\val\nue-7"#),
    (Kind::Json, r#"{"a":"\u043a\u043b\u044e\u0447-\u0441\u0435\u043a\u0440\u0435\u0442", "tulip/Harbor+93?quay": eightbyt}"#),
    (Kind::Text, "ключ-секрет, %D0%BA%D0%BB%D1%8E%D1%87-%D1%81%D0%B5%D0%BA%D1%80%D0%B5%D1%82"),
    (Kind::Text, "MIIEvQIBADANBgkqhkiG and MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw"),
    (Kind::Text, "-----BEGIN X-----\n  MIIEvQIBADANBgkqhkiG\n  9w0BAQEFAASCBKcw\n  -----END X-----\n"),
    (Kind::Text, "eightbyteightbyt eightby eightbytes tulip/Harbor+93?quaytulip/Harbor+93?quay"),
    (Kind::Text, "\x1b[32mtulip/\x1b[1;31mHarbor\x1b[0m+93?quay\x1b[K and \\u001b[32mghp_0123456789abcdefABCDEF0123456789abcd\\u001b[0m"),
    (Kind::Text, "\\x1b[1mpassword\\x1B[0m=\\033[31mhunter2x\\e[0m \\u001B[mtoken\\e[K: abc123def"),
    (Kind::Text, "\x1b[1234567890123456789012345mtulip/Harbor+93?quay \x1b[2Jx \x1b[ \x1b"),
    (Kind::Json, "{\"a\":\"\\u001b[32mtulip/\\u001b[0mHarbor+93?quay\\u001b\",\"b\":\"\\\\u001b[1mpassword=hunter2\\\\u001b[0m\"}"),
    (Kind::Json, "{\"a\":\"\\ud83d\\ude00 \\ud83d x \\udc00 \\u00e9\\b\\f\\n\\r\\t\\/\\\\\\\" \\q \\u12 password=hunter2\"}"),
    (Kind::Json, "\u{feff}{\"password\":\"hunter2\"}\u{1e}\n[1, -2.5e+3, true, false, null, \"a\"] 5 \"x\""),
    (Kind::Json, "{\"token\": -12.5e3, \"secret\": [\"a1b2c3d4\", 5], \"password\": {\"a\": {\"b\": [1]}}, \"key\": 1}"),
    (Kind::Json, "{\"password\": [], \"token\": {}, \"secret\": [ \"required\" , \"optional\" ], \"credentials\": {\"user\": \"a\", \"password\": \"p\"}}"),
    (Kind::Json, "{\"password\": { \"type\" : \"string\", \"default\": \"hunter2\"}, \"token\": {\"$ref\": \"#/x\"}, \"secret\": {\"kind\": \"Name\"}}"),
    (Kind::Json, "{\"auth\":\"YWRhOmh1bnRlcjI=\",\"x\":{\"auth\":\"YWRh\"},\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":\"v1\"}]}"),
    (Kind::Json, "[\"curl\",\"-u\",\"ada:hunter2\",\"--token\",\"t1\",\"Authorization\",\"Bearer x\",\"/bin/login\",\"-p\",\"p1\"]"),
    (Kind::Json, "{\"a\":[{\"password\":\"x1\"},{\"b\":[[\"token=abc123def\"]]}],\"c\":tru, password=hunter2"),
    (Kind::Text, "in /work/app\\nnext and /work/app\\next and /tmp\\x"),
    (Kind::Text, "\x1b[123456789012345678901234mtulip/Harbor\x1b[12345678901234567890123m+93?quay \x1b[123456789012345678901234"),
    (Kind::Text, "q=a%3DeyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2ln and x%20npm_0123456789abcdefABCDEF0123456789abcd"),
    (Kind::Text, "curl -u [REDACTED:known:0123abcd]:hunter2 x"),
    (Kind::Text, "foo -u ada:hunterx and foo -u ada:hunter2"),
    (Kind::Text, "curl '-x -uab:cd12' -uada:Xk29fLqW"),
    (Kind::Text, "curl x\"y -uada:Xk29fLqW"),
    (Kind::Text, "curl \"a b\" 'c d' -uada:Xk29fLqW"),
    (Kind::Text, "curl -b sid=<token> x; curl -b sid=$X; curl -b sid=changeme; curl -b sid=Xk29fLqW83mz"),
    (Kind::Text, "authorization == 'Bearer abc123def456', authorization = 'Bearer abc123def456'"),
    (Kind::Text, "Authorization: [\"Bearer abc123def456\"], Authorization: [Bearer abc123def456]"),
    (Kind::Text, "curl -HAuthorization:\\ Bearer\\ abc123def456 x"),
    (Kind::Text, "\"Authorization\": \"Bearer \" + \"abc123def456\", 'Authorization': 'Bearer ' . 'abc123def456'"),
    (Kind::Text, "bearer abcdefgh-ijklmnop-qrstuvwx, bearer abcdefgh-ijkl9nop-qrstuvwx, bearer aBcDeFgHiJkLmNoP"),
    (Kind::Text, "Bearer aBcDeFgHiJkLmNo, Basic YTpi, Basic YTpiYw, Basic YTpiYw=="),
    (Kind::Text, "AKIAABCDEFGHIJ---xyzAKIAABCDEFGHIJKLMNOQ AKIAABCDEFGHIJKLMNOPAKIAABCDEFGHIJKLMNOQ"),
    (Kind::Text, "0123456789abcdef01234567AKIAABCDEFGHIJKLMNOP"),
    (Kind::Text, "0123456789abcde+/123AKIAABCDEFGHIJKLMNOP"),
    (Kind::Text, "aws_secret_access_key => wJalrXUtnFEMIK7MDENGbPxRfiCYzK7qLmNoPqRs"),
    (Kind::Diff, "sk-fading-circle-container-no sk-FADING-CIRCLE-CONTAINER sk-fading-circle-12-container sk-fading-circle-123-container"),
    (Kind::Text, "password: &str =\"hunter2!\"; password: &str = \"hunter2!\"; password: b\"hunter2!\""),
    (Kind::Text, "password = \"\"\"\"\"x1y2z3w4\""),
    (Kind::Text, "the token is 2024-01-01T10:00:00Z yes, the token is 2024-01-01x10:00:00Z yes"),
    (Kind::Text, "--token=abcdefgh ?token=abcdefgh token=abcdefgh TOKEN=abcdefgh --password=abcdefgh x"),
    (Kind::Text, "<password>correct</password><secret>correct</secret><api-key>c0rrect9</api-key>"),
    (Kind::Text, "--password hunter --password abc --password ab1 --password -x"),
    (Kind::Text, "password: correct # comment\n?password: correct#x"),
    (Kind::Json, "{\"password\":{\"description\":\"x\",\"default\":\"hunter2\"},\"token\":{\"title\":\"x\",\"const\":\"y1\"},\"secret\":{\"anyOf\":[],\"example\":\"z1\"}}"),
    (Kind::Json, "\u{feff}"),
    (Kind::Json, "\u{feff}[1]\u{feff}[2] {\"a\":1] [1} , } {\"a\" 1} {1:2}"),
    (Kind::Json, "[\"-u\",\"a:b\",\"/usr/bin/curl\",\"-u\",\"ada:x\",\"-U\",\"p\",\"-p\",\"q\",\"docker\",\"login\",\"-p\",\"r\"]"),
    (Kind::Text, "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nand -----BEGIN PRIVATE KEY-----\nMIIE\nno"),
    (Kind::Text, "-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0123456789abcdef\nabcd\nend"),
    (Kind::Text, "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t\nMIIEpAIBAAKCAQEA\nMIIEpAIBAAKCAQE\nMIIEpAIBAAKCAQEA"),
    (Kind::Text, "password: |\n  hunter2x9\npassword: >-\n  hunter2x9\npassword: |2\r\n  hunter2x9\npassword: | hunter2x9"),
    (Kind::Json, "{\"password\":\"hunter2\\ud83d"),
    (Kind::Json, "{\"password\":\"hunter2\\ud83d\\"),
    (Kind::Json, "{\"password\":\"hunter2\\ud83d\\u"),
    (Kind::Json, "{\"password\":\"hunter2\\ud83d\\ud8"),
    (Kind::Json, "{\"password\":\"hunter2\\u00"),
    (Kind::Json, "{\"password\":\"hunter2\\"),
    (Kind::Json, "{\"password\":\"x\\ud83d\\ude00\\ud83c\\udf89\\u20ac\\u00e9\\b1\",\"token\":\"a\\ud83dx\\ud83d\\u0041\\udc00\"}"),
    (Kind::Text, "CREATE USER a IDENTIFIED BY 'hunter2x9'; IDENTIFIED BY \"<token>\" identified by hunter2"),
    (Kind::Json, "\u{fb01}x password=hunter2"),
    (Kind::Json, "\u{feff}{\"password\":\"hunter2\"}"),
    (Kind::Json, "{\"auth\":[\"YWRhOmh1bnRlcjI=\"],\"passphrase\":[\"--password\",\"the correct horse\"]}"),
    (Kind::Json, "{\"a\":\"\\u001b\\u005b32mtulip/\\u001b\\u005b0mHarbor+93?quay\",\"b\":\"x\\u00e9clair y\"}"),
    (Kind::Text, "cat /home/ada/very-secret/x"),
    (Kind::Text, "authorization==abc123def456ghi789 cookie==a=Xk29fLqW83mz"),
    (Kind::Text, "bearer abcdefghijklmnopqrst, bearer abcdefghijklmnopqrs"),
    (Kind::Text, "PSK=abcdef + x PSKS=abcdef + x"),
    (Kind::Headers, "Authorization: \"Bearer \"\nAuthorization: \"Bearer x1\"\nTOKEN=\"\"\nTOKEN='"),
    (Kind::Text, "getPassword(\"hunter2x9\") setPassword(\"hunter2x9\") setPassword (\"hunter2x9\") token('abc123def')"),
    (Kind::Text, "(:password \"hunter2x9\") (:password\"hunter2x9\") ( password \"hunter2x9\")"),
    (Kind::Text, "ENV API_KEY abc123def\nENV \"API_KEY\" abc123def\nsetenv API_KEY abc123def\nXENV API_KEY abc123def"),
    (Kind::Text, "<key>Password</key>\n  <string>hunter2x9</string><key>Password</key><x>hunter2x9</x>"),
    (Kind::Text, "<b>Password</b><string>hunter2x9</string> x</Password</key><string>hunter2x9</string>"),
    (Kind::Text, "password: |\nhunter2x9"),
    (Kind::Headers, "TOKEN=%\nTOKEN=%%\nTOKEN=%a%\nTOKEN=a%"),
    (Kind::Json, "\u{feff}{\"apiKey\": 5}"),
    (Kind::Text, "authorization: a1b2c3a1b2c3 authorization: a1b2ca1b2ca1"),
    (Kind::Text, "a [REDACTED:known:0123abcd] password=[REDACTED:password:0123abcd], token: [REDACTED:x]y1 [REDACTED:token:12]"),
];

/// An opening, what follows it over and over, and what closes it.
pub(crate) struct Long {
    pub(crate) kind: Kind,
    pub(crate) opening: &'static str,
    pub(crate) body: &'static str,
    pub(crate) closing: &'static str,
    pub(crate) lengths: Range<usize>,
    pub(crate) piece: usize,
}

impl Long {
    const fn of(self, body: &'static str) -> Self {
        Long { body, ..self }
    }
}

const fn long(kind: Kind, opening: &'static str, closing: &'static str) -> Long {
    Long { kind, opening, body: TOKEN, closing, lengths: 4066..4102, piece: 1500 }
}

const fn pem(kind: Kind, opening: &'static str, body: &'static str, closing: &'static str) -> Long {
    Long { kind, opening, body, closing, lengths: 16_320..16_392, piece: 5000 }
}

const TOKEN: &str = "aB3dE5gH7jK9mN1pQ2sT4vW6";
const LINES: &str = "MIIEpAIBAAKCAQEA0123456789abcdefMIIEpAIBAAKCAQEA0123456789abcdef\n";

#[rustfmt::skip]
pub(crate) const LONG: &[Long] = &[
    long(Kind::Text, "x ghp_", " and password=hunter2 end"),
    long(Kind::Text, "x key-", " end"),
    long(Kind::Text, "x password=", " end"),
    long(Kind::Text, "x password: \"", "\" end"),
    long(Kind::Text, "x password%3D", "%26 end"),
    long(Kind::Text, "x https://ada:", "@host/ end"),
    long(Kind::Text, "x https://ada", "@host/ end"),
    long(Kind::Text, "x Authorization: Bearer ", ".\nend"),
    long(Kind::Text, "x Authorization: Digest a=", "\nend"),
    long(Kind::Text, "x 'Authorization: Digest a=", "' end"),
    long(Kind::Text, "x bearer ", ". end"),
    long(Kind::Text, "x basic ", " end").of("YWRhOmh1bnRlcjIy"),
    long(Kind::Text, "x Cookie: a=", ";b=c\nend"),
    long(Kind::Text, "x eyJhbGciOiJIUzI1NiJ9.", ".sig end"),
    long(Kind::Text, "x eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.", ". end"),
    long(Kind::Text, "curl -u ada:", " https://x"),
    long(Kind::Text, "curl -u 'ada:", "' https://x"),
    long(Kind::Text, "curl -b sid=", " https://x"),
    long(Kind::Text, "sshpass -p ", " ssh x"),
    long(Kind::Text, "IDENTIFIED BY '", "' end"),
    long(Kind::Headers, "Authorization: Bearer ", "\nX: y"),
    long(Kind::Headers, "API_KEY=", "  \nX: y"),
    long(Kind::Json, "{\"password\":\"", "\",\"x\":\"y\"}"),
    long(Kind::Json, "{\"auth\":\"", "\",\"x\":\"y\"}").of("YWRhOmh1bnRlcjIy"),
    long(Kind::Json, "{\"password\":[1,\"", "\"],\"x\":\"y\"}"),
    long(Kind::Json, "{\"x\":\"password=", " z\",\"x\":\"y\"}"),
    Long { kind: Kind::Json, opening: "{\"token\":1", body: "0123456789", closing: ",\"x\":\"y\"}", lengths: 4066..4102, piece: 1500 },
    Long { kind: Kind::Json, opening: "{\"password\":[ ", body: " ", closing: "\"required\"],\"x\":\"y\"}", lengths: 236..260, piece: 100 },
    Long { kind: Kind::Json, opening: "{\"password\":{ ", body: " ", closing: "\"type\":\"string\"},\"x\":\"y\"}", lengths: 226..260, piece: 100 },
    Long { kind: Kind::Text, opening: "tulip/Harbor+93?", body: "\n", closing: "quay end", lengths: 28..38, piece: 7 },
    Long { kind: Kind::Text, opening: "tulip/Harbor+93?", body: "\\n", closing: "quay end", lengths: 28..38, piece: 7 },
    Long { kind: Kind::Text, opening: "we\"ird", body: "\\", closing: "val\\nue-7 end", lengths: 0..12, piece: 7 },
    Long { kind: Kind::Text, opening: "password: ", body: " ", closing: "Xk29fLqW83mz end", lengths: 12..20, piece: 7 },
    Long { kind: Kind::Text, opening: "x ", body: "a", closing: "password=Xk29fLqW83mz end", lengths: 50..62, piece: 7 },
    Long { kind: Kind::Text, opening: "x curl ", body: "a", closing: " -u ada:Xk29fLqW end", lengths: 108..130, piece: 7 },
    Long { kind: Kind::Text, opening: "x mysql://app:x#", body: "a1", closing: "@127.0.0.1/shop end", lengths: 230..260, piece: 7 },
    Long { kind: Kind::Text, opening: "curl ", body: "-x y ", closing: "-uada:Xk29fLqW end", lengths: 50..70, piece: 7 },
    Long { kind: Kind::Json, opening: "{\"", body: "a", closing: "password\":\"x1\"}", lengths: 50..62, piece: 7 },
    Long { kind: Kind::Headers, opening: "", body: "a", closing: "_password=x1", lengths: 50..62, piece: 7 },
    pem(Kind::Text, "x\n-----BEGIN PRIVATE KEY-----\n", LINES, "\n-----END PRIVATE KEY-----\nend"),
    pem(Kind::Text, "x LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", TOKEN, " end"),
    pem(Kind::Json, "{\"a\":\"-----BEGIN PRIVATE KEY-----\\n", TOKEN, "\\n-----END PRIVATE KEY-----\\n\"}"),
    Long { kind: Kind::Text, opening: "x ", body: "ordinary words ", closing: "password=Xk29fLqW83mz", lengths: 65_530..65_538, piece: 60_000 },
    Long { kind: Kind::Json, opening: "[\"", body: "tulip/Harbor+93?quay ", closing: "\"]", lengths: 8190..8196, piece: 700 },
    Long { kind: Kind::Json, opening: "{\"password\":\"", body: TOKEN, closing: "\",\"x\":\"y\"}", lengths: 5000..5002, piece: 4109 },
    Long { kind: Kind::Json, opening: "{\"password\":[1,\"", body: TOKEN, closing: "\"],\"x\":\"y\"}", lengths: 9000..9002, piece: 4108 },
    Long { kind: Kind::Json, opening: "{\"password\":[1,\"", body: TOKEN, closing: "\"],\"x\":\"y\"}", lengths: 9000..9002, piece: 4109 },
    Long { kind: Kind::Json, opening: "{\"password\":{\"a\":\"", body: TOKEN, closing: "\"},\"x\":\"y\"}", lengths: 9000..9002, piece: 700 },
    Long { kind: Kind::Json, opening: "{\"x\":\"", body: "a\\n", closing: "\",\"password\":\"x1\"}", lengths: 9000..9002, piece: 700 },
    Long { kind: Kind::Json, opening: "{\"password\":\"", body: "tulip/Harbor+93?quay0123456789", closing: "\"}", lengths: 8000..8001, piece: 4123 },
    Long { kind: Kind::Json, opening: "{\"a\":\"xx", body: "\\u00e9clair yy", closing: "\"}", lengths: 13..60, piece: 17 },
    Long { kind: Kind::Headers, opening: "", body: "X-A: b\nAPI_KEY=abc123\n", closing: "", lengths: 9000..9002, piece: 700 },
    Long { kind: Kind::Text, opening: "x ghp_", body: TOKEN, closing: " words that follow it in later pieces of the text", lengths: 4500..4502, piece: 10 },
    Long { kind: Kind::Text, opening: "password='", body: TOKEN, closing: "' words that follow it in later pieces of the text", lengths: 4500..4502, piece: 10 },
    Long { kind: Kind::Text, opening: "", body: "tulip/\nHarbor+93?quay ", closing: "", lengths: 9000..9004, piece: 700 },
];
