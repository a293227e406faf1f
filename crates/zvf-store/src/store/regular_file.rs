//! Opens files of a store, which another program may have replaced by pipes, devices or links.

use std::{
    fs::{File, Metadata},
    io::{self, ErrorKind},
    path::Path,
};

/// Opens a regular file; returns `None` if there is none or a folder. Reading a pipe would wait for a
/// writer, and reading a device need not end. A symbolic link that leads to nothing is an error.
pub(super) fn open(path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Opening a pipe does not wait either. Reads of regular files are unaffected.
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = match options.open(path) {
        Ok(file) => file,
        // No object can exist below a file.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return check_absent(path).map(|()| None);
        }
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Ok(None);
    }
    if !metadata.is_file() {
        return Err(irregular());
    }
    Ok(Some((file, metadata)))
}

/// Checks that a path has a regular file, a folder or nothing, before other code opens it.
pub(super) fn check(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => Err(irregular()),
        Err(error) if error.kind() == ErrorKind::NotFound => check_absent(path),
        _ => Ok(()),
    }
}

/// Checks that nothing is at a path that cannot be found, not even a symbolic link to something that
/// is missing.
///
/// The file of such a link exists elsewhere: git-annex has not fetched it, or a disk is not mounted.
/// Readers would replace an absent object with fill values.
pub(super) fn check_absent(path: &Path) -> io::Result<()> {
    let mut found = path
        .ancestors()
        .filter_map(|path| Some((path, path.symlink_metadata().ok()?)));
    let Some((nearest, _)) = found.next().filter(|(_, entry)| entry.is_symlink()) else {
        return Ok(());
    };
    match nearest.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(io::Error::other(format!(
            "the symbolic link {} leads to nothing; restore what it leads to, or remove it",
            nearest.display()
        ))),
        _ => Ok(()),
    }
}

fn irregular() -> io::Error {
    io::Error::other("it is not a regular file; delete or replace it")
}
