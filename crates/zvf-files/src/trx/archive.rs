//! Members of a zip file or a folder, by name.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufReader, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use zip::{CompressionMethod, ZipArchive, result::ZipError};
use zvf::{ErrorKind, numeric::Kind};
use zvf_model::attribute_name::label;

use crate::{
    FileError, FileFault, FilePlace,
    input::{ByteReader, copy_within, open_regular},
};

/// Upper bound on the number of members.
const MAX_MEMBERS: usize = 1 << 16;
/// Size of the read buffer.
const BUFFER: usize = 1 << 18;
/// Depth of folders: `dpg/GROUP/NAME`.
const DEEPEST: usize = 3;

/// A file inside the archive, which is a range of bytes of a file.
#[derive(Debug)]
pub(super) struct TrxMember {
    file: MemberFile,
    start: u64,
    length: u64,
}

/// The file with a member. There are too many members to hold one open for each.
#[derive(Debug)]
enum MemberFile {
    /// The archive, or the temporary file with all members that were unpacked.
    Open(Arc<File>),
    /// A file of a folder.
    Path(PathBuf),
}

/// The members by path.
#[derive(Debug)]
pub(super) struct TrxArchive {
    path: PathBuf,
    members: BTreeMap<String, TrxMember>,
}

/// The array that a file name describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArrayName {
    /// Name without columns and type.
    pub(super) name: String,
    pub(super) width: u32,
    pub(super) kind: Kind,
    pub(super) is_bit: bool,
}

impl TrxArchive {
    /// Opens a zip file or a folder. Deflated members are unpacked, at most `limit` bytes in all.
    pub(super) fn open(path: &Path, limit: u64) -> Result<Self, FileError> {
        let in_file = |source| FileFault::Io(source).of(path);
        let mut archive = Self {
            path: path.to_path_buf(),
            members: BTreeMap::new(),
        };
        if fs::metadata(path).map_err(in_file)?.is_dir() {
            archive.add_folder(path, "", 0)?;
        } else {
            archive.add_zip(limit)?;
        }
        Ok(archive)
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<(), FileError> {
        let in_folder = |source| FileFault::Io(source).of(folder);
        for entry in fs::read_dir(folder).map_err(in_folder)? {
            let entry = entry.map_err(in_folder)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let name = format!("{prefix}{name}");
            // Follows symbolic links.
            let is_folder = fs::metadata(entry.path()).map_err(in_folder)?.is_dir();
            if is_folder {
                if depth.saturating_add(1) >= DEEPEST {
                    let why = "folders are nested too deeply for TRX";
                    return Err(self.error(&name, FileFault::Unsupported(why)));
                }
                self.add_folder(&entry.path(), &format!("{name}/"), depth.saturating_add(1))?;
                continue;
            }
            let in_member = |source| self.error(&name, FileFault::Io(source));
            let file = open_regular(&entry.path()).map_err(in_member)?;
            let length = file.metadata().map_err(in_member)?.len();
            let member = TrxMember {
                file: MemberFile::Path(entry.path()),
                start: 0,
                length,
            };
            self.add(name, member)?;
        }
        Ok(())
    }

    fn add_zip(&mut self, limit: u64) -> Result<(), FileError> {
        let path = self.path.clone();
        let in_file = |source| FileFault::Io(source).of(&path);
        let in_zip = |error: ZipError| FileFault::from(error).of(&path);
        let file = File::open(&path).map_err(in_file)?;
        let archive = Arc::new(file.try_clone().map_err(in_file)?);
        // Bytes of stored members, which do not overlap.
        let mut stored = file.metadata().map_err(in_file)?.len();
        let file = BufReader::with_capacity(BUFFER, file);
        let mut zip = ZipArchive::new(file).map_err(|error| match error {
            // The list of members is at the end.
            ZipError::InvalidArchive(_) => {
                let part = "the zip archive is cut off or damaged, so copy the file again";
                FileFault::library(ErrorKind::Damaged, part, error).of(&path)
            }
            error => in_zip(error),
        })?;
        let mut left = limit;
        let mut unpacked: Option<Arc<File>> = None;
        for at in 0..zip.len() {
            let mut member = zip.by_index(at).map_err(in_zip)?;
            let name = member.name().map_err(in_zip)?.into_owned();
            if member.is_dir() {
                continue;
            }
            let length = member.size();
            if length > left {
                return Err(self.error(&name, FileFault::Unpacked { limit }));
            }
            let at_member = |fault: FileFault| fault.at(&path, FilePlace::Member(name.clone()));
            let (file, start, found) = if member.compression() == CompressionMethod::Stored {
                let start = member
                    .data_start()
                    .ok_or_else(|| at_member(FileFault::Broken("no data")))?;
                // Reads the member once to check its checksum.
                let found = io::copy(&mut member, &mut io::sink())
                    .map_err(|error| at_member(error.into()))?;
                stored = stored.checked_sub(found).ok_or_else(|| {
                    let why = "members of the archive overlap; it is damaged";
                    at_member(FileFault::Unsupported(why))
                })?;
                (Arc::clone(&archive), start, found)
            } else {
                let file = match unpacked.take() {
                    Some(file) => file,
                    None => Arc::new(tempfile::tempfile().map_err(|it| at_member(it.into()))?),
                };
                let mut end = &*file;
                let start = end
                    .seek(SeekFrom::End(0))
                    .map_err(|error| at_member(error.into()))?;
                let copied = copy_within(&mut member, &mut end, length).map_err(at_member)?;
                left = left.saturating_sub(copied);
                unpacked = Some(Arc::clone(&file));
                (file, start, copied)
            };
            if found != length {
                let expected = "the member has the size that the archive states; it is damaged";
                return Err(at_member(FileFault::field("its size", found, expected)));
            }
            self.add(
                name,
                TrxMember {
                    file: MemberFile::Open(file),
                    start,
                    length,
                },
            )?;
        }
        Ok(())
    }

    fn add(&mut self, name: String, member: TrxMember) -> Result<(), FileError> {
        let is_outside = name.starts_with('/') || name.split('/').any(|part| part == "..");
        if is_outside || self.members.len() >= MAX_MEMBERS {
            let why = "member names cannot leave the archive, and 65536 members are read at most";
            return Err(self.error(&name, FileFault::Unsupported(why)));
        }
        if self.members.contains_key(&name) {
            return Err(self.error(&name, FileFault::Twice(name.clone())));
        }
        self.members.insert(name, member);
        Ok(())
    }

    /// Adds the path of the archive and of a member to a fault.
    pub(super) fn error(&self, member: &str, fault: FileFault) -> FileError {
        fault.at(&self.path, FilePlace::Member(member.to_owned()))
    }

    /// Returns the paths of all members, ascending.
    pub(super) fn names(&self) -> Vec<String> {
        self.members.keys().cloned().collect()
    }

    /// Returns the size of a member. A single byte stands for an empty array of wider numbers.
    pub(super) fn length(&self, name: &str) -> u64 {
        self.members.get(name).map_or(0, |member| member.length)
    }

    /// Returns a reader of a member.
    pub(super) fn reader(&self, name: &str) -> Result<ByteReader, FileError> {
        let member = self
            .members
            .get(name)
            .ok_or_else(|| self.error(name, FileFault::Broken("no such member")))?;
        let file = match &member.file {
            MemberFile::Open(file) => Arc::clone(file),
            MemberFile::Path(path) => {
                let file = open_regular(path);
                Arc::new(file.map_err(|error| self.error(name, error.into()))?)
            }
        };
        let (start, length) = (member.start, member.length);
        Ok(ByteReader::part(&self.path, file, start, length))
    }

    /// Reads a whole member.
    pub(super) fn bytes(&self, name: &str) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        self.reader(name)?
            .take(&mut bytes, self.length(name), "a member")?;
        Ok(bytes)
    }
}

impl ArrayName {
    /// Parses the last part of a path, as `fa.float32` or `colors.3.uint8`.
    pub(super) fn parse(file: &str) -> Option<Self> {
        let parts: Vec<&str> = file.split('.').collect();
        let (name, width, kind) = match parts.as_slice() {
            [name, kind] => (name, 1, kind),
            [name, width, kind] => (name, width.parse().ok()?, kind),
            _ => return None,
        };
        let is_bit = *kind == "bit";
        let kind = if is_bit { Kind::UInt8 } else { kind_of(kind)? };
        let is_valid = !name.is_empty() && (1..=1 << 16).contains(&width);
        is_valid.then(|| Self {
            name: label(name).into_owned(),
            width,
            kind,
            is_bit,
        })
    }

    /// Returns the size of a row in bytes.
    pub(super) fn row_size(&self) -> u64 {
        let size = u64::try_from(self.kind.size()).unwrap_or(u64::MAX);
        size.saturating_mul(self.width.into())
    }
}

/// Returns whether a file beside the arrays is not an array.
pub(super) fn is_json(file: &str) -> bool {
    let extension = Path::new(file).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Returns the kind of a type name.
pub(super) fn kind_of(name: &str) -> Option<Kind> {
    let kinds = [
        Kind::Int8,
        Kind::Int16,
        Kind::Int32,
        Kind::Int64,
        Kind::UInt8,
        Kind::UInt16,
        Kind::UInt32,
        Kind::UInt64,
        Kind::Float16,
        Kind::Float32,
        Kind::Float64,
    ];
    kinds.into_iter().find(|kind| kind.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_give_columns_and_type() {
        let name = ArrayName::parse("colors.3.uint8").unwrap();
        assert_eq!(
            (name.name.as_str(), name.width, name.kind),
            ("colors", 3, Kind::UInt8)
        );
        assert!(ArrayName::parse("mask.bit").unwrap().is_bit);
        for wrong in [
            "fa",
            "fa.complex64",
            ".float32",
            "a.b.c.float32",
            "a.0.float32",
            "a.-1.int8",
        ] {
            assert_eq!(ArrayName::parse(wrong), None, "{wrong}");
        }
    }
}
