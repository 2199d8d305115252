//! Programs that run a command where an option of theirs says so. What the command is, is not read.

use super::Word;

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
const ROWS: [Row; 22] = [
    row(&["fd", "fdfind"], &[], "xX", &["--exec", "--exec-batch"]),
    row(&["tar", "gtar", "bsdtar"], &[], "IF", &[
        "--to-command", "--checkpoint-action", "--use-compress-program", "--info-script", "--new-volume-script",
        "--rsh-command", "--rmt-command",
    ]),
    row(&["cpio"], &[], "", &["--rsh-command"]),
    row(&["sort", "gsort"], &[], "", &["--compress-program"]),
    row(&["split", "gsplit"], &[], "", &["--filter"]),
    row(&["rsync"], &[], "e", &["--rsh"]),
    row(&["rg"], &[], "", &["--pre", "--hostname-bin"]),
    row(&["man"], &[], "P", &["--pager"]),
    row(&["zip"], &[], "T", &["--unzip-command"]),
    row(&["install", "ginstall"], &[], "", &["--strip-program"]),
    row(&["wget"], &[], "", &["--use-askpass"]),
    row(&["nc", "ncat", "netcat"], &[], "ce", &["--exec", "--sh-exec"]),
    row(&["git"], &["bisect", "run"], "", &[]),
    row(&["git"], &["submodule", "foreach"], "", &[]),
    row(&["git"], &["filter-branch"], "", &[]),
    row(&["git"], &["rebase"], "x", &["--exec"]),
    row(&["git"], &["difftool"], "x", &["--extcmd"]),
    row(&["git"], &["grep"], "O", &["--open-files-in-pager"]),
    row(&["git"], &["clone"], "cu", &["--config", "--upload-pack"]),
    row(&["git"], &["push"], "", &["--receive-pack", "--exec"]),
    row(&["git"], &["archive"], "", &["--exec"]),
    row(&["git"], &[], "", &["--upload-pack"]),
];

/// Whether the program is told by its options to run a command.
pub(super) fn run_commands(name: &str, arguments: &[Word]) -> bool {
    ROWS.iter().filter(|row| row.names.contains(&name)).any(|row| row.fits(arguments))
}

impl Row {
    fn fits(&self, arguments: &[Word]) -> bool {
        let mut left = arguments.iter();
        let stand = self.words.iter().all(|wanted| left.any(|word| word.text() == *wanted));
        let always = self.letters.is_empty() && self.long.is_empty();
        stand && (always || arguments.iter().any(|word| self.is_option(word.text())))
    }

    /// Whether it is one of the options, also in a cluster or shortened.
    fn is_option(&self, text: &str) -> bool {
        match text.strip_prefix("--") {
            Some(long) => {
                let name = long.split('=').next().unwrap_or(long);
                !name.is_empty() && self.long.iter().any(|option| option[2..].starts_with(name))
            }
            None => text.starts_with('-') && text.contains(|c| self.letters.contains(c)),
        }
    }
}
