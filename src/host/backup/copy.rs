//! Copies of files with their checksums.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;

use crate::system::files;

/// Bytes that are read at once.
const STRETCH: usize = 1024 * 1024;

/// Reads the first bytes of a file, gives them to `take`, and returns their checksum.
///
/// # Errors
///
/// The file cannot be read, or is shorter, or those of `take`.
pub(in crate::host) fn each_stretch(
    from: &Path,
    bytes: u64,
    take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u32> {
    let named = |error: io::Error| {
        let text = format!("{}: {error}", from.display());
        io::Error::new(error.kind(), text)
    };
    let file = File::open(from).map_err(named)?;
    each_stretch_of(file, from, bytes, take)
}

/// Reads the first bytes of a file that is open.
fn each_stretch_of(
    mut file: File,
    from: &Path,
    bytes: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u32> {
    let named = |error: io::Error| {
        let text = format!("{}: {error}", from.display());
        io::Error::new(error.kind(), text)
    };
    let mut stretch = vec![0; STRETCH];
    let (mut left, mut sum) = (bytes, 0);
    while 0 < left {
        let wanted = usize::try_from(left).map_or(STRETCH, |left| left.min(STRETCH));
        let part = stretch.get_mut(..wanted).unwrap_or_default();
        file.read_exact(part).map_err(named)?;
        sum = crc32c::crc32c_append(sum, part);
        take(part)?;
        left -= u64::try_from(wanted).unwrap_or(left);
    }
    Ok(sum)
}

/// Copies the first bytes of a file into a new file that only the broker's user may read, with zeros behind them up to
/// `length`, and syncs it. Returns the checksum of the bytes.
///
/// # Errors
///
/// A file cannot be read or written, or is shorter.
pub(crate) fn copy(from: &Path, bytes: u64, to: &Path, length: u64) -> io::Result<u32> {
    copy_of(File::open(from), from, bytes, to, length)
}

/// Copies as [`copy`] does, out of a directory that others may have changed: links are not followed.
///
/// # Errors
///
/// Likewise, or the file is no regular one.
pub(in crate::host) fn copy_regular(
    from: &Path,
    bytes: u64,
    to: &Path,
    length: u64,
) -> io::Result<u32> {
    copy_of(files::open_regular(from), from, bytes, to, length)
}

fn copy_of(
    opened: io::Result<File>,
    from: &Path,
    bytes: u64,
    to: &Path,
    length: u64,
) -> io::Result<u32> {
    let opened = opened.map_err(|error| {
        let text = format!("{}: {error}", from.display());
        io::Error::new(error.kind(), text)
    })?;
    let named = |error: io::Error| {
        let text = format!("{}: {error}", to.display());
        io::Error::new(error.kind(), text)
    };
    let mut options = files::private();
    let created = options.write(true).create(true).truncate(true).open(to);
    let mut file = created.map_err(named)?;
    let sum = each_stretch_of(opened, from, bytes, |part| {
        file.write_all(part).map_err(named)
    })?;
    let zeros = vec![0; STRETCH];
    let mut left = length.saturating_sub(bytes);
    while 0 < left {
        let wanted = usize::try_from(left).map_or(STRETCH, |left| left.min(STRETCH));
        let part = zeros.get(..wanted).unwrap_or_default();
        file.write_all(part).map_err(named)?;
        left -= u64::try_from(wanted).unwrap_or(left);
    }
    file.sync_all().map_err(named)?;
    Ok(sum)
}
