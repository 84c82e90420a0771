//! Files that are replaced as a whole, for all users but the log, and directories that are made as a whole.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The users that may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those of its directory: all users, or where others may not enter it, the user of the broker's process.
    OfDirectory,
    /// The user of the broker's process.
    Owner,
}

/// A file that could not be replaced.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}", file.display())]
pub(crate) struct NotReplaced {
    pub(crate) file: PathBuf,
    pub(crate) source: io::Error,
}

/// Replaces files of one directory: all of them are written and synced before the first takes its
/// place, so that a full disk leaves all as they were.
///
/// # Errors
///
/// The first file for which it cannot be done.
pub(crate) fn replace(files: &[(PathBuf, &[u8], Readers)]) -> Result<(), NotReplaced> {
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

/// Opens a file for reading whose directory may be another's making. Links are not followed, and nothing but a regular file is
/// opened: a pipe or a device may never answer, or never end.
///
/// # Errors
///
/// The system's, or that it is something else.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let opened = options.open(path).map_err(|error| {
        if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
            not_regular("a symbolic link")
        } else {
            error
        }
    })?;
    let kind = opened.metadata()?.file_type();
    match kind {
        _ if kind.is_file() => Ok(opened),
        _ if kind.is_dir() => Err(not_regular("a directory")),
        _ if kind.is_fifo() => Err(not_regular("a pipe")),
        _ => Err(not_regular("a device")),
    }
}

/// Reads a small file that [`open_regular`] opens.
///
/// # Errors
///
/// The system's, that it is something else, or that it has more bytes.
pub(crate) fn read_regular(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_regular(path)?
        .take(bytes_max + 1)
        .read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read <= bytes_max) {
        return Ok(bytes);
    }
    let text = format!("it has more than {bytes_max} bytes");
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

fn not_regular(what: &str) -> io::Error {
    let text = format!("it is {what}, and a regular file is needed");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Returns the options for files that only the broker's user may read.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Permissions of others than the owner.
const OTHERS: u32 = 0o077;

/// Returns whether others than its owner may read the directory of a file.
fn is_open(file: &Path) -> io::Result<bool> {
    let directory = file
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let found = fs::metadata(directory.unwrap_or_else(|| Path::new(".")))?;
    Ok(found.mode() & OTHERS != 0)
}

/// Makes a directory that only the broker's user may read; an existing one stays as it is. Returns
/// the mode of one that others may read.
///
/// # Errors
///
/// If it does not exist and cannot be made.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<Option<u32>> {
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

/// Why [`make_whole`] has made no directory.
#[derive(Debug)]
pub(crate) enum NotMade {
    /// It exists, and is not empty.
    NotEmpty(PathBuf),
    /// The directory that would get its name exists: it is being filled, or that was interrupted.
    Left(PathBuf),
    /// The system refuses something.
    Io { path: PathBuf, source: io::Error },
}

fn not_made(path: &Path) -> impl Fn(io::Error) -> NotMade {
    move |source| NotMade::Io {
        path: path.to_owned(),
        source,
    }
}

/// Makes a directory that is there wholly or not at all. `write` fills one beside it, whose name has the suffix and which only the
/// broker's user may read; in the end that gets the name.
///
/// # Errors
///
/// The directory exists and is not empty, or another program makes it; those of `write` and of the system.
pub(crate) fn make_whole<T, E: From<NotMade>>(
    directory: &Path,
    suffix: &str,
    write: impl FnOnce(&Path) -> Result<T, E>,
) -> Result<T, E> {
    let directory = std::path::absolute(directory).map_err(not_made(directory))?;
    match fs::read_dir(&directory) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(NotMade::NotEmpty(directory).into());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(not_made(&directory)(error).into()),
    }
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    let temporary = directory.with_file_name(name);
    let parent = directory.parent().unwrap_or_else(|| Path::new("/"));
    fs::create_dir_all(parent).map_err(not_made(parent))?;
    match DirBuilder::new().mode(0o700).create(&temporary) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Err(NotMade::Left(temporary).into());
        }
        Err(error) => return Err(not_made(&temporary)(error).into()),
    }
    let made = write(&temporary).and_then(|made| {
        fs::rename(&temporary, &directory).map_err(not_made(&directory))?;
        sync_directory(parent).map_err(not_made(parent))?;
        Ok(made)
    });
    if made.is_err() {
        // It has another name already, or nothing in it is needed.
        let _ = fs::remove_dir_all(&temporary);
    }
    made
}

/// Syncs a directory, so that its names are durable.
///
/// # Errors
///
/// If the system call fails.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
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
        Readers::OfDirectory if is_open(file)? => 0o644,
        Readers::OfDirectory | Readers::Owner => 0o600,
    };
    let mut options = OpenOptions::new();
    let mut opened = options.write(true).create_new(true).mode(mode).open(&new)?;
    opened.write_all(bytes)?;
    opened.sync_all()?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_a_regular_file_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").unwrap();
        assert_eq!(read_regular(&at("file"), 4).unwrap(), b"text");
        symlink(at("file"), at("link")).unwrap();
        fs::create_dir(at("directory")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for (name, what) in [
            ("link", "a symbolic link"),
            ("directory", "a directory"),
            ("pipe", "a pipe"),
        ] {
            let error = read_regular(&at(name), 4).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
        }
        let error = read_regular(&at("file"), 3).unwrap_err().to_string();
        assert!(error.contains("more than 3 bytes"), "{error}");
        let none = read_regular(&at("none"), 3).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }
}
