//! A new cluster for the price of a copy: what `initdb` makes is kept under the build folder.
//!
//! The kept copy depends on nothing but the server's version and [`REVISION`]; ports and settings come at start.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::account::Account;
use crate::cluster::{PASSWORD, USER};
use crate::programs::Programs;

/// Goes up when the arguments below change.
const REVISION: u32 = 1;

/// The folder of what may be built again: cargo's target folder, found from the running test.
pub(crate) fn build_folder() -> Result<PathBuf> {
    let test = std::env::current_exe().context("the running program has no path")?;
    let tagged = test.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    Ok(tagged.map_or_else(std::env::temp_dir, Path::to_path_buf))
}

/// Fills `data` with a new cluster, owned by the account.
pub(crate) fn copy_cluster(programs: &Programs, account: Account, data: &Path) -> Result<()> {
    let folder = build_folder()?;
    let kept = folder.join(format!("pg-template-{}-{REVISION}", programs.version()?));
    let lock = folder.join("pg-template.lock");
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&lock);
    let lock = lock.context("cannot open the template's lock file")?;
    make_once(programs, account, &kept, &lock)?;
    copy(&kept, data, account)
}

/// Tests run side by side; the first makes the template and the others wait for it.
fn make_once(programs: &Programs, account: Account, kept: &Path, lock: &File) -> Result<()> {
    lock.lock().context("cannot lock the template")?;
    if kept.is_dir() {
        return lock.unlock().context("cannot unlock the template");
    }
    // The account may be unable to reach the build folder, so the cluster is made elsewhere.
    let scratch = tempfile::Builder::new().prefix("runyard-initdb-").tempdir_in(account.scratch())?;
    account.own(scratch.path())?;
    let data = scratch.path().join("data");
    initdb(programs, account, scratch.path(), &data)?;
    let partial = kept.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial)?;
    }
    copy(&data, &partial, Account::Own)?;
    std::fs::rename(&partial, kept).context("cannot keep the template")?;
    lock.unlock().context("cannot unlock the template")
}

fn initdb(programs: &Programs, account: Account, scratch: &Path, data: &Path) -> Result<()> {
    let password = scratch.join("password");
    std::fs::write(&password, PASSWORD)?;
    account.own(&password)?;
    let output = account
        .command(&programs.initdb)
        .args(["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--username", USER])
        .arg("--pwfile")
        .arg(&password)
        .arg("--pgdata")
        .arg(data)
        .current_dir(scratch)
        .output()
        .context("cannot start initdb")?;
    ensure!(output.status.success(), "initdb failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Copies a folder with all that is in it; modes stay, the owner is the account.
fn copy(from: &Path, to: &Path, account: Account) -> Result<()> {
    std::fs::create_dir(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in from.read_dir().with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, account)?;
        } else {
            std::fs::copy(entry.path(), &target)
                .with_context(|| format!("cannot copy {}", target.display()))?;
            account.own(&target)?;
        }
    }
    std::fs::set_permissions(to, from.metadata()?.permissions())?;
    account.own(to)
}
