//! Files that are replaced as a whole, for all users but the log.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The users that may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readers {
    /// All users.
    All,
    /// The user of the broker's process.
    Owner,
}

/// A file that could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", file.display())]
pub(super) struct NotReplaced {
    pub(super) file: PathBuf,
    pub(super) source: io::Error,
}

/// Replaces files of one directory: all of them are written and synced before the first takes its
/// place, so that a full disk leaves all as they were.
///
/// # Errors
///
/// The first file for which it cannot be done.
pub(super) fn replace(files: &[(PathBuf, &[u8], Readers)]) -> Result<(), NotReplaced> {
    let failed = |file: &Path| {
        let file = file.to_owned();
        move |source| NotReplaced { file, source }
    };
    let mut staged = Vec::new();
    for (file, bytes, readers) in files {
        let new = stage(file, bytes, *readers).map_err(failed(file))?;
        staged.push((new, file));
    }
    for (new, file) in &staged {
        fs::rename(new, file).map_err(failed(file))?;
    }
    match files.first().and_then(|(file, ..)| file.parent()) {
        Some(directory) => sync_directory(directory).map_err(failed(directory)),
        None => Ok(()),
    }
}

/// Returns the options for files that only the broker's user may read.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a directory that only the broker's user may read; an existing one stays as it is. Returns
/// the mode of one that others may read.
///
/// # Errors
///
/// If it does not exist and cannot be made.
pub(super) fn make_private_directory(path: &Path) -> io::Result<Option<u32>> {
    /// Permissions of others than the owner.
    const OTHERS: u32 = 0o077;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let mode = fs::metadata(path)?.mode() & 0o777;
            Ok((mode & OTHERS != 0).then_some(mode))
        }
        Err(error) => Err(error),
    }
}

/// Syncs a directory, so that its names are durable.
///
/// # Errors
///
/// If the system call fails.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    // The parent of a bare name is written as nothing.
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)?.sync_all()
}

/// Writes the replacement of a file, beside it.
fn stage(file: &Path, bytes: &[u8], readers: Readers) -> io::Result<PathBuf> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = file.with_file_name(name);
    // One that a crash has left may have another mode.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mode = match readers {
        Readers::All => 0o644,
        Readers::Owner => 0o600,
    };
    let mut options = OpenOptions::new();
    let mut opened = options.write(true).create_new(true).mode(mode).open(&new)?;
    opened.write_all(bytes)?;
    opened.sync_all()?;
    Ok(new)
}
