//! Programs that run a command, or write what they are told to, where an option of theirs says so. What the command is, is not read.

use super::{Git, SimpleCommand, Word};

/// A program, the words that stand among its arguments in this order, and the options with which it runs a command.
struct Row {
    names: &'static [&'static str],
    words: &'static [&'static str],
    letters: &'static str,
    long: &'static [&'static str],
}

const fn row(
    names: &'static [&'static str],
    words: &'static [&'static str],
    letters: &'static str,
    long: &'static [&'static str],
) -> Row {
    Row { names, words, letters, long }
}

#[rustfmt::skip]
const ROWS: [Row; 55] = [
    row(&["fd", "fdfind"], &[], "xX", &["--exec", "--exec-batch"]),
    row(&["tar", "gtar", "bsdtar"], &[], "IFT", &[
        "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script", "--new-volume-script",
        "--rsh-command", "--rmt-command", "--files-from",
    ]),
    row(&["cpio"], &[], "", &["--rsh-command"]),
    row(&["sort", "gsort"], &[], "", &["--compress-program"]),
    row(&["split", "gsplit"], &[], "", &["--filter"]),
    row(&["diff3", "sdiff"], &[], "", &["--diff-program"]),
    row(&["rsync"], &[], "e", &["--rsh"]),
    row(&["ssh"], &[], "oFI", &[]),
    row(&["scp", "sftp"], &[], "oFSD", &[]),
    row(&["ssh-keygen", "ssh-add"], &[], "Ds", &[]),
    row(&["rg"], &[], "", &["--pre", "--hostname-bin"]),
    row(&["ag", "ack"], &[], "", &["--pager"]),
    row(&["man"], &[], "PHC", &["--pager", "--html", "--config-file"]),
    row(&["zip"], &[], "T", &["--unzip-command"]),
    row(&["install", "ginstall"], &[], "", &["--strip-program"]),
    row(&["wget"], &[], "e", &["--use-askpass", "--execute", "--config"]),
    row(&["curl"], &[], "K", &["--config"]),
    row(&["nc", "ncat", "netcat"], &[], "ce", &["--exec", "--sh-exec"]),
    row(&["gcc", "g++", "cc", "c++", "clang", "clang++"], &[], "B", &["-wrapper", "-specs", "--specs", "-fplugin"]),
    row(&["dpkg-architecture"], &[], "c", &["--command"]),
    row(&["npx"], &[], "c", &["--call"]),
    row(&["npm"], &["exec"], "c", &["--call"]),
    row(&["npm"], &["x"], "c", &["--call"]),
    row(&["pnpm"], &["exec"], "c", &["--shell-mode"]),
    row(&["pnpm"], &["dlx"], "c", &["--shell-mode"]),
    row(&["git"], &["bisect", "run"], "", &[]),
    row(&["git"], &["submodule", "foreach"], "", &[]),
    row(&["git"], &["fast-import"], "", &["--export-marks", "--export-pack-edges", "--allow-unsafe-features"]),
    row(&["git"], &["fast-export"], "", &["--export-marks"]),
    row(&["git"], &["interpret-trailers"], "", &["--in-place"]),
    row(&["git"], &["rebase"], "x", &["--exec"]),
    row(&["git"], &["difftool"], "x", &["--extcmd"]),
    row(&["git"], &["grep"], "O", &["--open-files-in-pager"]),
    row(&["git"], &["init"], "", &["--template"]),
    row(&["git"], &["clone"], "cu", &["--config", "--upload-pack", "--template"]),
    row(&["git"], &["push"], "", &["--receive-pack", "--exec"]),
    row(&["git"], &["send-pack"], "", &["--receive-pack", "--exec"]),
    row(&["git"], &["fetch"], "", &["--upload-pack"]),
    row(&["git"], &["pull"], "", &["--upload-pack"]),
    row(&["git"], &["fetch-pack"], "", &["--upload-pack", "--exec"]),
    row(&["git"], &["ls-remote"], "", &["--upload-pack", "--exec"]),
    row(&["git"], &["archive"], "o", &["--exec", "--output"]),
    row(&["git"], &["format-patch"], "o", &["--output", "--output-directory"]),
    // They write what they show, in whatever form they are told, to a file: it could be one that git runs commands from.
    row(&["git"], &["diff"], "", &["--output"]),
    row(&["git"], &["log"], "", &["--output"]),
    row(&["git"], &["show"], "", &["--output"]),
    row(&["git"], &["stash"], "", &["--output"]),
    row(&["git"], &["reflog"], "", &["--output"]),
    row(&["git"], &["shortlog"], "", &["--output"]),
    row(&["git"], &["whatchanged"], "", &["--output"]),
    row(&["git"], &["range-diff"], "", &["--output"]),
    row(&["git"], &["diff-tree"], "", &["--output"]),
    row(&["git"], &["diff-index"], "", &["--output"]),
    row(&["git"], &["diff-files"], "", &["--output"]),
    row(&["git"], &["checkout-index"], "", &["--prefix"]),
];

/// Subcommands of git that run what they are told, or write it where they are told.
#[rustfmt::skip]
const GIT: [&str; 13] = [
    "filter-branch", "merge-index", "merge-file", "merge-one-file", "mailinfo", "mailsplit", "remote-ext", "remote-fd",
    "for-each-repo", "credential-store", "instaweb", "p4", "svn",
];

/// Whether the program is told by its options to run a command, or may be by a word that is not known.
pub(super) fn run_commands(command: &SimpleCommand) -> bool {
    let Some(name) = command.name() else { return false };
    let git = Git::of(command);
    let arguments = git.as_ref().map_or(&command.arguments[..], |git| git.words);
    let is_told = git.as_ref().and_then(Git::subcommand).is_some_and(|subcommand| GIT.contains(&subcommand));
    is_told || ROWS.iter().filter(|row| row.names.contains(&name)).any(|row| row.fits(arguments))
}

impl Row {
    fn fits(&self, arguments: &[Word]) -> bool {
        let mut left = arguments.iter();
        let stand = self.words.iter().all(|wanted| left.any(|word| word.text() == *wanted));
        let always = self.letters.is_empty() && self.long.is_empty();
        // The first word of `tar` is a cluster also without a dash.
        let is_cluster =
            |word: &Word| self.names.contains(&"tar") && word.text().contains(|c| self.letters.contains(c));
        let has_option = || arguments.iter().any(|word| word.may_choose() || self.is_option(word.text()));
        stand && (always || has_option() || arguments.first().is_some_and(is_cluster))
    }

    /// Whether it is one of the options, also in a cluster or shortened.
    fn is_option(&self, text: &str) -> bool {
        if text.starts_with("--") {
            let name = text.split('=').next().unwrap_or(text);
            return name.len() > 2 && self.long.iter().any(|option| option.starts_with(name));
        }
        let is_long = |option: &&str| !option.starts_with("--") && text.starts_with(*option);
        let is_letter = || text.contains(|c| self.letters.contains(c));
        text.starts_with('-') && (is_letter() || self.long.iter().any(is_long))
    }
}
