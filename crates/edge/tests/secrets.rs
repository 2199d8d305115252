//! Where secrets live: names, links, permissions, and the layout of a mounted Secret.
//!
//! clause: B12
//! clause: B13
//! clause: B17
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of tests fail like tests"
)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use runyard_domain::Code;
use runyard_edge::{ProfileSecrets, SECRET_BYTES_MAX, Secrets, SecretsError};
use rustix::fs::{CWD, FileType, Mode, mknodat};

struct Place {
    _kept: tempfile::TempDir,
    base: PathBuf,
}

impl Place {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let base = kept.path().join("secrets");
        Place { base, _kept: kept }
    }

    fn secrets(&self) -> Secrets {
        Secrets::at(&self.base)
    }

    /// Both ways of resolving a name.
    fn both(&self) -> [Secrets; 2] {
        [self.secrets(), self.secrets().name_by_name()]
    }

    fn write(&self, path: &str, value: &str) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, value).unwrap();
    }

    fn link(&self, path: &str, to: impl AsRef<Path>) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(to, path).unwrap();
    }
}

fn text(secrets: &Secrets, profile: &str, key: &str) -> String {
    let value = secrets.read(profile, key).unwrap();
    value.text().unwrap().to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn b17_a_secret_is_kept_for_its_owner_alone_and_replaced_at_once() {
    let place = Place::new();
    let secrets = place.secrets();
    secrets.set("codex", "auth.json", b"one").unwrap();
    assert_eq!(text(&secrets, "codex", "auth.json"), "one");
    secrets.set("codex", "auth.json", b"another").unwrap();
    assert_eq!(text(&secrets, "codex", "auth.json"), "another");
    let profile = place.base.join("codex");
    assert_eq!([mode(&place.base), mode(&profile)], [0o700, 0o700]);
    assert_eq!(mode(&profile.join("auth.json")), 0o600);
    let left: Vec<_> = fs::read_dir(&profile).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["auth.json"], "nothing else is left behind");
    assert!(!format!("{:?}", secrets.read("codex", "auth.json").unwrap()).contains("another"));
}

#[test]
fn b17_a_key_that_others_could_read_is_theirs_no_longer_when_it_is_set_again() {
    let place = Place::new();
    place.write("codex/auth.json", "old");
    let file = place.base.join("codex/auth.json");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(place.secrets().look("codex", "auth.json").unwrap().open_to_others);
    // A draft that somebody left or laid does not show through either.
    place.write("codex/.draft", "draft");
    fs::set_permissions(place.base.join("codex/.draft"), fs::Permissions::from_mode(0o666)).unwrap();
    place.secrets().set("codex", "auth.json", b"new").unwrap();
    assert_eq!(mode(&file), 0o600);
    assert!(!place.secrets().look("codex", "auth.json").unwrap().open_to_others);
}

#[test]
fn b17_listing_tells_names_and_nothing_that_is_no_name() {
    let place = Place::new();
    assert_eq!(place.secrets().profiles().unwrap(), [], "without a directory there are none");
    place.secrets().set("deepseek", "auth.json", b"a").unwrap();
    place.secrets().set("codex", "config.toml", b"b").unwrap();
    place.secrets().set("codex", "auth.json", b"c").unwrap();
    place.write("codex/.draft", "d");
    place.write("codex/with blank", "e");
    place.write("codex/folder/file", "f");
    place.write(".hidden/auth.json", "g");
    place.write("file", "h");
    fs::create_dir(place.base.join("empty")).unwrap();
    let of = |profile: &str, keys: &[&str]| ProfileSecrets {
        profile: profile.to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
    };
    let all = [of("codex", &["auth.json", "config.toml"]), of("deepseek", &["auth.json"]), of("empty", &[])];
    assert_eq!(place.secrets().profiles().unwrap(), all);
}

#[test]
fn b12_a_name_that_is_none_is_refused_everywhere_and_not_repeated() {
    let place = Place::new();
    place.write("codex/auth.json", "value");
    let secrets = place.secrets();
    for name in ["", ".", "..", "../codex", "a/b", "/etc/passwd", ".ssh", "..data", "a..b", "a b", "sk\u{e4}"]
    {
        let refused = [
            secrets.read(name, "auth.json").unwrap_err(),
            secrets.read("codex", name).unwrap_err(),
            secrets.look("codex", name).unwrap_err(),
            secrets.set(name, "auth.json", b"x").unwrap_err(),
            secrets.set("codex", name, b"x").unwrap_err(),
            secrets.remove(name, None).unwrap_err(),
            secrets.remove("codex", Some(name)).unwrap_err(),
        ];
        for error in refused {
            assert!(matches!(error, SecretsError::Name { .. }), "{name:?}: {error:?}");
            assert_eq!(error.code(), Code::ValidationError);
            assert!(name.len() < 3 || !error.to_string().contains(name), "{error}");
        }
    }
    assert_eq!(text(&secrets, "codex", "auth.json"), "value");
}

#[test]
fn b12_b13_nothing_leads_out_of_a_profiles_directory() {
    let place = Place::new();
    place.write("deepseek/auth.json", "of another profile");
    place.write("codex/auth.json", "its own");
    let outside = place.base.join("../outside");
    fs::write(&outside, "outside").unwrap();
    place.link("codex/up", "../deepseek/auth.json");
    place.link("codex/out-and-in", "../codex/auth.json");
    place.link("codex/absolute", &outside);
    place.link("codex/own-absolute", place.base.join("codex/auth.json"));
    place.link("codex/far-up", "../../../../../../../../etc/passwd");
    place.link("codex/over", "hop");
    place.link("codex/hop", "../deepseek/auth.json");
    place.link("codex/by-folder", "folder/auth.json");
    place.link("codex/folder", "../deepseek");
    place.link("codex/magic", "/proc/self/environ");
    place.link("codex/self", "self");
    place.link("codex/round", "about");
    place.link("codex/about", "round");
    for secrets in place.both() {
        for key in [
            "up",
            "out-and-in",
            "absolute",
            "own-absolute",
            "far-up",
            "over",
            "hop",
            "by-folder",
            "magic",
            "self",
            "round",
        ] {
            let error = secrets.read("codex", key).unwrap_err();
            assert!(matches!(error, SecretsError::LeadsOut { .. }), "{key}: {error:?}");
            assert_eq!(error.code(), Code::SecretUnavailable);
            assert!(matches!(secrets.look("codex", key), Err(SecretsError::LeadsOut { .. })), "{key}");
        }
        assert_eq!(text(&secrets, "codex", "auth.json"), "its own");
    }
}

#[test]
fn b12_only_plain_files_of_a_sensible_size_are_secrets() {
    let place = Place::new();
    place.write("codex/auth.json", "value");
    let profile = place.base.join("codex");
    mknodat(CWD, profile.join("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let _socket = UnixListener::bind(profile.join("socket")).unwrap();
    fs::create_dir(profile.join("folder")).unwrap();
    place.link("codex/to-pipe", "pipe");
    place.link("codex/to-folder", "folder");
    place.link("codex/to-nothing", "nothing");
    fs::write(profile.join("largest"), vec![b'a'; SECRET_BYTES_MAX as usize]).unwrap();
    fs::write(profile.join("larger"), vec![b'a'; SECRET_BYTES_MAX as usize + 1]).unwrap();
    for secrets in place.both() {
        for key in ["pipe", "socket", "folder", "to-pipe", "to-folder"] {
            let error = secrets.read("codex", key).unwrap_err();
            assert!(matches!(error, SecretsError::NotAFile { .. }), "{key}: {error:?}");
        }
        for (profile, key) in [("codex", "nothing"), ("codex", "to-nothing"), ("nobody", "auth.json")] {
            let error = secrets.read(profile, key).unwrap_err();
            assert!(matches!(error, SecretsError::Missing { .. }), "{profile} {key}: {error:?}");
            assert_eq!(error.to_string(), format!("{key} of {profile} is missing"));
        }
        assert!(matches!(secrets.read("codex", "larger"), Err(SecretsError::TooLarge { .. })));
        assert_eq!(secrets.read("codex", "largest").unwrap().expose().len() as u64, SECRET_BYTES_MAX);
    }
    let too_long = vec![b'a'; SECRET_BYTES_MAX as usize + 1];
    let error = place.secrets().set("codex", "auth.json", &too_long).unwrap_err();
    assert!(matches!(error, SecretsError::TooLarge { .. }));
    assert_eq!(text(&place.secrets(), "codex", "auth.json"), "value", "what was there is there");
}

/// As Kubernetes mounts a Secret: the keys are links into `..data`, which is a link to the version that counts.
fn mounted(place: &Place) {
    place.write("codex/..2026_01/auth.json", "first");
    place.write("codex/..2026_01/config.toml", "model");
    place.link("codex/..data", "..2026_01");
    place.link("codex/auth.json", "..data/auth.json");
    place.link("codex/config.toml", "..data/config.toml");
}

#[test]
fn b17_a_mounted_secret_is_read_through_its_links_also_when_it_changes() {
    let place = Place::new();
    mounted(&place);
    let profile = place.base.join("codex");
    for secrets in place.both() {
        assert_eq!(text(&secrets, "codex", "auth.json"), "first");
        let listed = secrets.profiles().unwrap();
        assert_eq!(listed[0].keys, ["auth.json", "config.toml"], "..data and its versions are no keys");
    }
    place.write("codex/..2026_02/auth.json", "second");
    place.link("codex/..data_tmp", "..2026_02");
    fs::rename(profile.join("..data_tmp"), profile.join("..data")).unwrap();
    fs::remove_dir_all(profile.join("..2026_01")).unwrap();
    for secrets in place.both() {
        assert_eq!(text(&secrets, "codex", "auth.json"), "second");
        let gone = secrets.read("codex", "config.toml").unwrap_err();
        assert!(matches!(gone, SecretsError::Missing { .. }), "{gone:?}");
    }
}

#[test]
fn b17_while_a_mounted_secret_is_switched_every_read_finds_one_whole_value() {
    let place = Place::new();
    mounted(&place);
    place.write("codex/..2026_02/auth.json", "second");
    let profile = place.base.join("codex");
    let switching = std::thread::spawn(move || {
        for turn in 0..200 {
            let version = if turn % 2 == 0 { "..2026_02" } else { "..2026_01" };
            symlink(version, profile.join("..data_tmp")).unwrap();
            fs::rename(profile.join("..data_tmp"), profile.join("..data")).unwrap();
        }
    });
    while !switching.is_finished() {
        for secrets in place.both() {
            let found = text(&secrets, "codex", "auth.json");
            assert!(["first", "second"].contains(&found.as_str()), "{found}");
        }
    }
    switching.join().unwrap();
}

#[test]
fn b17_a_mounted_secret_is_not_changed_here() {
    let place = Place::new();
    mounted(&place);
    let secrets = place.secrets();
    for error in [
        secrets.set("codex", "auth.json", b"x").unwrap_err(),
        secrets.remove("codex", Some("auth.json")).unwrap_err(),
        secrets.remove("codex", None).unwrap_err(),
    ] {
        assert!(matches!(error, SecretsError::Mounted { .. }), "{error:?}");
        assert_eq!(error.code(), Code::StorageReadOnly);
    }
    assert_eq!(text(&secrets, "codex", "auth.json"), "first");
}

#[test]
fn b17_a_profiles_directory_may_lie_elsewhere() {
    let place = Place::new();
    let elsewhere = place.base.join("../mount");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("auth.json"), "from the mount").unwrap();
    place.link("codex", &elsewhere);
    for secrets in place.both() {
        assert_eq!(text(&secrets, "codex", "auth.json"), "from the mount");
        assert_eq!(secrets.profiles().unwrap()[0].keys, ["auth.json"]);
    }
}

#[test]
fn b17_removing_takes_a_key_or_all_and_says_what_is_gone() {
    let place = Place::new();
    let secrets = place.secrets();
    for (profile, key) in [("codex", "auth.json"), ("codex", "config.toml"), ("deepseek", "auth.json")] {
        secrets.set(profile, key, b"value").unwrap();
    }
    assert_eq!(secrets.remove("codex", Some("config.toml")).unwrap(), ["config.toml"]);
    for (profile, key) in [("codex", Some("config.toml")), ("nobody", None), ("nobody", Some("auth.json"))] {
        let error = secrets.remove(profile, key).unwrap_err();
        assert!(matches!(error, SecretsError::Nothing { .. }), "{error:?}");
        assert_eq!(error.code(), Code::NotFound);
    }
    assert_eq!(secrets.remove("codex", None).unwrap(), ["auth.json"]);
    assert!(!place.base.join("codex").exists());
    assert_eq!(text(&secrets, "deepseek", "auth.json"), "value");
}

#[test]
fn b12_removing_a_link_leaves_what_it_leads_to() {
    let place = Place::new();
    place.write("deepseek/auth.json", "of another profile");
    place.link("codex/auth.json", "../deepseek/auth.json");
    assert_eq!(place.secrets().remove("codex", None).unwrap(), ["auth.json"]);
    assert_eq!(text(&place.secrets(), "deepseek", "auth.json"), "of another profile");
    place.link("codex/auth.json", "../deepseek/auth.json");
    place.secrets().set("codex", "auth.json", b"its own").unwrap();
    assert_eq!(text(&place.secrets(), "deepseek", "auth.json"), "of another profile");
    assert_eq!(text(&place.secrets(), "codex", "auth.json"), "its own");
}
