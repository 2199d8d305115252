//! Each layer by example: what is taken out, what stands in its place, and what stays.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use runyard_redact::{Kind, Known, Redactor, Safe, TagKey, holds_placeholder};
use serde_json::{Value, json};

fn redactor() -> Redactor {
    Redactor::builder(TagKey::from_bytes([1; 32]))
        .workspace("/work/app")
        .private_path("/home/ada", "<home>")
        .private_path("/home/ada/.runyard", "<data>")
        .private_path("/tmp", "<tmp>")
        .build()
        .unwrap()
}

/// The text with each placeholder's tag left out: `[token]` for `[REDACTED:token:0123abcd]`.
fn shown(kind: Kind, text: &str) -> String {
    let mut shown = redactor().text(kind, text).into_inner();
    while let Some(at) = shown.find("[REDACTED:").filter(|at| holds_placeholder(&shown[*at..])) {
        let end = at + shown[at..].find(']').unwrap();
        let kind = shown[at + 10..end - 9].to_owned();
        shown.replace_range(at..=end, &format!("⟨{kind}⟩"));
    }
    shown
}

#[track_caller]
fn check(kind: Kind, text: &str, expected: &str) {
    assert_eq!(shown(kind, text), expected);
}

#[track_caller]
fn stays(kind: Kind, text: &str) {
    check(kind, text, text);
}

const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJlLTEyMzQ1";

#[test]
fn b11_credentials_show_by_their_form_in_every_kind_of_content() {
    for kind in [Kind::Text, Kind::Diff, Kind::Headers] {
        check(kind, &format!("got {JWT}."), "got ⟨jwt⟩.");
        check(kind, "key sk-ant-api03-abc123DEF456ghi789 rest", "key ⟨key⟩ rest");
        check(kind, "AKIAABCDEFGHIJKLMNOP", "⟨key⟩");
        check(kind, "postgres://ada:hunter22@db/app", "postgres://ada:⟨url⟩@db/app");
        check(kind, "redis://:s3cr3tpw@cache:6379", "redis://:⟨url⟩@cache:6379");
        check(kind, "https://0123456789abcdef01234567@github.com/x", "https://⟨url⟩@github.com/x");
        check(
            kind,
            "curl -H 'Authorization: Bearer abc123def456' x",
            "curl -H 'Authorization: Bearer ⟨header⟩' x",
        );
        check(kind, "a\n-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nb", "a\n⟨pem⟩\nb");
        check(
            kind,
            "+-----BEGIN RSA PRIVATE KEY-----\n+MIIEpAIBAAKCAQEA0123456789\n+abcd=\n+-----END RSA PRIVATE KEY-----\n+x",
            "+⟨pem⟩\n+x",
        );
        check(kind, "[authorization: Bearer x1234567ab]", "[authorization: Bearer ⟨header⟩]");
        check(kind, "\x1b[32mghp_0123456789abcdefABCDEF0123456789abcd\x1b[0m", "\x1b[32m⟨token⟩\x1b[0m");
        check(kind, "a%3Dghp_0123456789abcdefABCDEF0123456789abcd", "a%3D⟨token⟩");
        check(kind, "AKIAABCDEFGHIJKLMNOPAKIAABCDEFGHIJKLMNOQ", "⟨key⟩⟨key⟩");
        check(kind, "mysql://app:x#T6BcW@127.0.0.1/shop", "mysql://app:⟨url⟩@127.0.0.1/shop");
        check(
            kind,
            "app | -----BEGIN PRIVATE KEY-----\napp | MIIEpAIBAAKCAQEA0123456789\napp | -----END PRIVATE KEY-----\nb",
            "app | ⟨pem⟩\nb",
        );
        stays(kind, "https://x.org/a?to=bob@x.org and http://h:8080/a?b=c@d.org");
        stays(kind, "https://git@github.com/x and ada@example.com:22 and http://host:8080/a@b");
        stays(kind, "-----BEGIN PRIVATE KEY----- marks the start of a key");
        stays(kind, "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----");
        stays(kind, "-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA0123456789\n-----END CERTIFICATE-----");
        stays(kind, "text.starts_with(\"ghp_\") || text.starts_with(\"AKIA\")");
        stays(kind, "sk-xxxxxxxxxxxxxxxxxxxx and ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        stays(kind, "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        stays(kind, "Authorization: Bearer <token>\n");
        stays(kind, "format!(\"Authorization: Bearer {token}\")");
    }
}

#[test]
fn b11_a_key_that_was_cut_off_is_taken_out_as_far_as_it_goes() {
    let lines = "MIIEpAIBAAKCAQEA0123456789abcdefMIIEpAIBAAKCAQEA0123456789abcdef\n".repeat(3);
    check(Kind::Text, &format!("-----BEGIN EC PRIVATE KEY-----\n{lines}and so on"), "⟨pem⟩\nand so on");
    check(Kind::Text, &format!("-----BEGIN EC PRIVATE KEY-----\n{lines}"), "⟨pem⟩\n");
}

#[test]
fn b11_values_of_keys_that_name_a_secret_are_guessed_in_texts_and_never_in_content() {
    let guessed = [
        ("password=hunter2", "password=⟨password⟩"),
        ("DB_PASSWORD=foo AWS_SECRET_ACCESS_KEY=bar", "DB_PASSWORD=⟨password⟩ AWS_SECRET_ACCESS_KEY=⟨key⟩"),
        ("api_key=12345 and password: 'x y' end", "api_key=⟨key⟩ and password: '⟨password⟩' end"),
        ("{\\\"token\\\": \\\"abc123def\\\"}", "{\\\"token\\\": \\\"⟨token⟩\\\"}"),
        ("apiKey: \"a1b2c3d4e5\",", "apiKey: \"⟨key⟩\","),
        ("mysql --password hunter2 -h db", "mysql --password ⟨password⟩ -h db"),
        ("Server=db;Password=a,b;c9;Database=x", "Server=db;Password=⟨password⟩;Database=x"),
        ("GET /x?token=abcd1234&page=2", "GET /x?token=⟨token⟩&page=2"),
        ("curl -u ada:hunter2 https://x", "curl -u ada:⟨password⟩ https://x"),
        ("password: hunter2\nuser: ada", "password: ⟨password⟩\nuser: ada"),
        ("let password: &str = \"hunter2!\";", "let password: &str = \"⟨password⟩\";"),
        ("auth_token: Some(\"29xCEYvpMMEL9\")", "auth_token: Some(\"⟨token⟩\")"),
        ("password=[REDACTED:x]realsecret", "password=⟨password⟩"),
        ("{password: Xk29fLqW83mz}", "{password: ⟨password⟩}"),
        ("(password=abc123de) x", "(password=⟨password⟩) x"),
        ("{\"pin_secret\": 84629175}", "{\"pin_secret\": ⟨secret⟩}"),
        (
            "\x1b[34;1m\"password\"\x1b[0m: \x1b[32m\"Xk29fLqW83mz\"\x1b[0m",
            "\x1b[34;1m\"password\"\x1b[0m: \x1b[32m\"⟨password⟩\"\x1b[0m",
        ),
        ("password: 'it''s Xk29fLqW83mz' x", "password: '⟨password⟩' x"),
        ("password = \"\"\"Xk29fLqW83mz\"\"\"", "password = \"\"\"⟨password⟩\"\"\""),
        ("curl -sSu ada:Xk29fLqW83mz x", "curl -sSu ada:⟨password⟩ x"),
        ("curl -u 'ada':'Xk29fLqW83mz' x", "curl -u 'ada':'⟨password⟩' x"),
        ("[\"curl\", \"-u\", \"ada:Xk29fLqW83mz\"]", "[\"curl\", \"-u\", \"ada:⟨password⟩\"]"),
        ("a=password%3DXk29fLqW83mz%26b", "a=password%3D⟨password⟩%26b"),
        ("&quot;password&quot;:&quot;Xk29fLqW83mz&quot;", "&quot;password&quot;:&quot;⟨password⟩&quot;"),
        (
            "<property name=\"password\">Xk29fLqW83mz</property>",
            "<property name=\"password\">⟨password⟩</property>",
        ),
        ("the password is Xk29fLqW83mz.", "the password is ⟨password⟩."),
    ];
    for (text, expected) in guessed {
        check(Kind::Text, text, expected);
        stays(Kind::Diff, text);
    }
}

#[test]
fn code_and_sentences_about_secrets_stay_as_they_are() {
    for text in [
        "fn parse_token(token: &str) -> Token {",
        "password = getpass()",
        "let secret = load_secret();",
        "if password == \"\" {",
        "expected token: ')'",
        "api_key: ${API_KEY}",
        "api_key: ${{ secrets.API_KEY }}",
        "token = os.environ[\"TOKEN\"]",
        "const token = process.env.TOKEN;",
        "password: String,",
        "password: Option<String>,",
        "token: expected identifier, found `)`",
        "max_tokens=4096 tokens: 12 token_count=3 password_length: 8",
        "Password: ",
        "the password is wrong; the token expired, 12 tokens: fine",
        "\"password\": \"Password is required\"",
        "cannot read /srv/ada/token: not found",
        "integrity sha512-AbCdEf0123456789AbCdEf0123456789AbCdEf0123456789AbCdEf0123456789AbCdEf0123456789ABCDEFGH==",
        "checksum = \"4b825dc642cb6eb9a060e54bf8d69288fbee49044b825dc642cb6eb9a060e54b\"",
        "id: 550e8400-e29b-41d4-a716-446655440000",
        "primary_key=id, sort_key: created_at, cache_key=users:17",
        "docker run -u 1000:1000 image",
        "password=***** token=<token> secret=xxxxxxxx",
    ] {
        stays(Kind::Text, text);
    }
}

#[test]
fn b11_headers_and_environments_are_redacted_by_name() {
    check(
        Kind::Headers,
        "Host: x\r\nAuthorization: Bearer abc\r\nCookie: a=b; c=d\r\nX-Api-Key: k\r\nX-Next-Token: 5\r\n",
        "Host: x\r\nAuthorization: Bearer ⟨header⟩\r\nCookie: ⟨cookie⟩\r\nX-Api-Key: ⟨key⟩\r\nX-Next-Token: 5\r\n",
    );
    check(
        Kind::Headers,
        "PATH=/bin\nexport GITHUB_TOKEN='ab c'\nPWD=/x\nTOKEN=\n",
        "PATH=/bin\nexport GITHUB_TOKEN='⟨token⟩'\nPWD=/x\nTOKEN=\n",
    );
}

#[test]
fn b11_json_is_redacted_by_key_and_stays_json() {
    check(Kind::Json, r#"{"password":"hunter2","user":"ada"}"#, r#"{"password":"⟨password⟩","user":"ada"}"#);
    check(
        Kind::Json,
        r#"{"apiKey": 5, "secret": {"a":[1,"}"]}, "x": 1, "token": [1, 2]}"#,
        r#"{"apiKey": "⟨key⟩", "secret": "⟨secret⟩", "x": 1, "token": "⟨token⟩"}"#,
    );
    check(Kind::Json, r#"{"msg":"line\npassword=hunter2\tx"}"#, r#"{"msg":"line\npassword=⟨password⟩\tx"}"#);
    check(
        Kind::Json,
        r#"{"env":[{"name":"DB_PASSWORD","value":"v"},{"name":"A","value":"v"}]}"#,
        r#"{"env":[{"name":"DB_PASSWORD","value":"⟨password⟩"},{"name":"A","value":"v"}]}"#,
    );
    check(
        Kind::Json,
        r#"{"argv":["x","--password","p","q"]}"#,
        r#"{"argv":["x","--password","⟨password⟩","q"]}"#,
    );
    check(
        Kind::Json,
        "{\"token\":\"a\"}\n{\"token\":\"b\"} not json password=hunter2",
        "{\"token\":\"⟨token⟩\"}\n{\"token\":\"⟨token⟩\"} not json password=⟨password⟩",
    );
    check(
        Kind::Json,
        r#"{"password":{"type":"string","default":"hunter2"}}"#,
        r#"{"password":{"type":"string","default":"⟨password⟩"}}"#,
    );
    check(Kind::Json, r#"{"a":"\u0067hp_0123456789abcdefABCDEF0123456789abcd"}"#, r#"{"a":"⟨token⟩"}"#);
    for text in [
        r#"{ "password" : null, "token":true, "secret":"", "tokens":12 , "a":"\u00e9\/" }"#,
        r#"{"sessionId":"ses_1","maxTokens":4096,"nextPageToken":"CAUQAA"}"#,
        r#"{"properties":{"password":{"type":"string","minLength":8}}}"#,
    ] {
        stays(Kind::Json, text);
    }
    let long_key = format!("{{\"{}password\":\"x\"}}", "a".repeat(64));
    stays(Kind::Json, &long_key);
}

#[test]
fn b11_values_in_memory_follow_the_same_rules() {
    let redactor = redactor();
    let value = json!({
        "apiKey": "k", "GITHUB_TOKEN": 5, "deep": [{"Set-Cookie": {"a": 1}}, "see https://ada:pw99@host/"],
        "tokens": 12, "password": null, "path": "/home/ada/x", "env": {"name": "DB_PASSWORD", "value": "v"},
        "credentials": {"user": "ada", "password": "p"}, "ghp_0123456789abcdefABCDEF0123456789abcd": 1,
    });
    let text: Value = serde_json::from_str(&redactor.text(Kind::Json, &value.to_string())).unwrap();
    let safe: Safe<Value> = redactor.json(value);
    assert_eq!(*safe, text);
    assert_eq!(safe["tokens"], 12);
    assert_eq!(safe["path"], "<home>/x");
    assert_eq!(safe["credentials"]["user"], "ada");
    assert!(safe["deep"][0]["Set-Cookie"].as_str().unwrap().starts_with("[REDACTED:cookie:"));
    assert!(safe.as_object().unwrap().keys().all(|key| !key.starts_with("ghp_")));

    let deep = (0..1000).fold(json!("password=hunter2"), |deep, _| Value::Array(vec![deep]));
    assert!(!format!("{:?}", *redactor.json(deep)).contains("hunter2"));
}

#[test]
fn c15_private_paths_are_shown_by_the_name_of_their_directory() {
    for kind in [Kind::Text, Kind::Diff, Kind::Headers] {
        check(kind, "at /home/ada/notes.txt:3", "at <home>/notes.txt:3");
        check(kind, "/home/ada/.runyard/x and /home/ada/.runyard2", "<data>/x and <home>/.runyard2");
        check(
            kind,
            "error in /work/app/src/x.rs, root /work/app, /work/app/.",
            "error in src/x.rs, root ., .",
        );
        check(
            kind,
            "file:///home/ada/a%20b -I/tmp/inc PATH=/tmp:/bin",
            "file://<home>/a%20b -I<tmp>/inc PATH=<tmp>:/bin",
        );
        check(kind, "--- a/x\n+++ /home/ada.", "--- a/x\n+++ <home>.");
        stays(kind, "ssh://tmp@10.0.0.5/srv https://tmp/ https:\\/\\/tmp\\/x");
        stays(kind, "/home/adam /home/ada-evil /home/ada.bak /srv/home/ada ../tmp/x /work/application");
    }
    check(Kind::Json, r#"{"a":"\/home\/ada\/x","b":"/tmp"}"#, r#"{"a":"<home>\/x","b":"<tmp>"}"#);
    assert!(!holds_placeholder(&*redactor().text(Kind::Text, "/home/ada/x")));
}

#[test]
fn c15_a_secret_under_a_private_path_is_seen_to_have_been_there() {
    let builder = Redactor::builder(TagKey::from_bytes([1; 32])).private_path("/home/ada", "<home>");
    let redactor = builder.known([Known::value("ada/very-secret-name")]).build().unwrap();
    let shown = redactor.text(Kind::Text, "cat /home/ada/very-secret-name/x");
    assert!(shown.starts_with("cat <home>[REDACTED:known:") && shown.ends_with("]/x"), "{shown:?}");
}

#[test]
fn j07_what_was_redacted_is_recognised_and_what_was_not_is_not() {
    let redactor = redactor();
    assert!(holds_placeholder(&*redactor.content("token ghp_0123456789abcdefABCDEF0123456789abcd")));
    assert!(!holds_placeholder(&*redactor.content("nothing here, also not [REDACTED]")));
}

#[test]
fn bytes_that_are_no_text_pass_through() {
    let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    for kind in Kind::ALL {
        assert_eq!(*redactor().bytes(kind, &bytes), bytes, "{kind:?}");
    }
}
